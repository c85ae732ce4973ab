// SPDX-License-Identifier: Apache-2.0
// Stores what an analysis has learned across a restart of the daemon, as words of text. Each type lists its fields
// once, for writing and reading, in
//   template <typename Self, typename Archive> static void archive(Self& self, Archive& fields) { fields(self.a_, ...);
//   }
// The text is not trusted: what does not fit fails the whole read, and sums of accepted numbers do not overflow.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/model/nvme.h"

namespace ssdpulse::analysis {

class StateWriter {
 public:
  template <typename... Fields>
  void operator()(const Fields&... fields) {
    (write(fields), ...);
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void write(model::Uint128 value);
  void write(std::uint64_t value) { write(model::Uint128{value}); }
  void write(bool value) { write(model::Uint128{value}); }
  void write(model::Rounding value) { write(static_cast<model::Uint128>(value)); }
  void write(std::int64_t value) { write(model::Uint128{static_cast<std::uint64_t>(value)}); }
  void write(std::chrono::nanoseconds value) { write(std::int64_t{value.count()}); }
  void write(std::chrono::system_clock::time_point value) {
    const auto since_epoch = std::chrono::duration_cast<std::chrono::microseconds>(value.time_since_epoch());
    write(static_cast<std::uint64_t>(std::max<std::int64_t>(since_epoch.count(), 0)));
  }
  void write(const std::string& value);
  template <typename T>
  void write(const std::optional<T>& value) {
    write(value.has_value());
    if (value) {
      write(*value);
    }
  }
  template <typename T>
  void write(const std::vector<T>& values) {
    write(std::uint64_t{values.size()});
    for (const T& value : values) {
      write(value);
    }
  }
  template <typename T>
  void write(const T& value) {
    T::archive(value, *this);
  }

  std::string text_;
};

class StateReader {
 public:
  explicit StateReader(std::string_view text) : rest_(text) {}

  template <typename... Fields>
  void operator()(Fields&... fields) {
    (read(fields), ...);
  }
  /// Whether everything was read without an error, and nothing is left.
  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }

 private:
  static constexpr std::uint64_t kMaxElements = 64;
  static constexpr std::uint64_t kMaxMicroseconds = std::uint64_t{1} << 52;  // the year 2112

  std::string_view next_word();
  std::uint64_t number_up_to(std::uint64_t most);
  std::int64_t signed_number();
  void read(model::Uint128& value);
  void read(std::uint64_t& value) { value = number_up_to(UINT64_MAX); }
  void read(bool& value) { value = number_up_to(1) == 1; }
  void read(model::Rounding& value) {
    value = static_cast<model::Rounding>(number_up_to(static_cast<std::uint64_t>(model::Rounding::unknown)));
  }
  void read(std::int64_t& value) { value = signed_number(); }
  void read(std::chrono::nanoseconds& value) { value = std::chrono::nanoseconds(signed_number()); }
  void read(std::chrono::system_clock::time_point& value) {
    value = std::chrono::system_clock::time_point(std::chrono::microseconds(number_up_to(kMaxMicroseconds)));
  }
  void read(std::string& value);
  template <typename T>
  void read(std::optional<T>& value) {
    bool present = false;
    read(present);
    value = present ? std::optional<T>(std::in_place) : std::nullopt;
    if (value) {
      read(*value);
    }
  }
  template <typename T>
  void read(std::vector<T>& values) {
    values.resize(number_up_to(kMaxElements));
    for (T& value : values) {
      read(value);
    }
  }
  template <typename T>
  void read(T& value) {
    T::archive(value, *this);
  }

  std::string_view rest_;
  bool good_ = true;
};

}  // namespace ssdpulse::analysis
