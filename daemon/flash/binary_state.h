// SPDX-License-Identifier: Apache-2.0
// BinaryWriter, BinaryReader: the state of a model, several megabytes, as bytes that are kept across a restart of the
// daemon: numbers of fixed width, least significant byte first, and arrays of them. The bytes that are read are not
// trusted: anything that does not fit fails the whole read.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ssdpulse::flash {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

/// FNV-1a by 64-bit words: protects against a damaged file, not against a forged one.
inline std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t result = 0xCBF29CE484222325U;
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof word) {
    word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    result = (result ^ word) * 0x100000001B3U;
    result ^= result >> 29;
  }
  return result;
}

class BinaryWriter {
 public:
  /// Numbers, enumerations, texts, and arrays of numbers.
  template <typename... Values>
  void operator()(const Values&... values) {
    (write(values), ...);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  /// The bytes and their checksum: see without_checksum().
  [[nodiscard]] std::string with_checksum() const {
    BinaryWriter sum;
    sum(checksum(bytes_));
    return bytes_ + sum.bytes();
  }

 private:
  template <typename T>
  void write(const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    append(&value, sizeof value);
  }
  template <typename T>
  void write(const std::vector<T>& values) {
    static_assert(std::is_arithmetic_v<T>);
    write(std::uint64_t{values.size()});
    append(values.data(), values.size() * sizeof(T));
  }
  void write(const std::string& text) {
    write(std::uint64_t{text.size()});
    append(text.data(), text.size());
  }
  void append(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }

  std::string bytes_;
};

/// Does not copy the bytes. After an error, nothing more is read.
class BinaryReader {
 public:
  explicit BinaryReader(std::string_view bytes) : rest_(bytes) {}

  /// Of an array, exactly as many elements as it has: the caller knows how many it expects.
  template <typename... Values>
  void operator()(Values&... values) {
    (read(values), ...);
  }
  void fail() { good_ = false; }
  [[nodiscard]] bool good() const { return good_; }
  /// Whether everything was read without an error, and nothing is left.
  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }

 private:
  template <typename T>
  void read(T& value) {
    static_assert((std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || std::is_enum_v<T>);
    take(&value, sizeof value);
  }
  template <typename T>
  void read(std::vector<T>& values) {
    std::uint64_t size = 0;
    read(size);
    good_ = good_ && size == values.size();
    take(values.data(), good_ ? values.size() * sizeof(T) : 0);
  }
  void read(std::string& text) {
    std::uint64_t size = 0;
    read(size);
    good_ = good_ && size <= rest_.size();
    text.assign(rest_.substr(0, good_ ? size : 0));
    rest_.remove_prefix(text.size());
  }
  void take(void* data, std::size_t size) {
    good_ = good_ && size <= rest_.size();
    if (good_ && size > 0) {
      std::memcpy(data, rest_.data(), size);
      rest_.remove_prefix(size);
    }
  }

  std::string_view rest_;
  bool good_ = true;
};

/// What with_checksum() was called on; absent: the bytes are damaged.
inline std::optional<std::string_view> without_checksum(std::string_view bytes) {
  std::uint64_t sum = 0;
  const std::string_view body = bytes.substr(0, bytes.size() - std::min(bytes.size(), sizeof sum));
  BinaryReader end(bytes.substr(body.size()));
  end(sum);
  return end.complete() && sum == checksum(body) ? std::optional(body) : std::nullopt;
}

}  // namespace ssdpulse::flash
