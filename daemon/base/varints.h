// SPDX-License-Identifier: Apache-2.0
// Numbers of variable length, as protobuf encodes them: seven bits a byte, the lowest first; the eighth bit
// means that more follow. All our code that stores numbers as bytes uses VarintWriter and VarintReader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ssdpulse::util {

class VarintWriter {
 public:
  VarintWriter& put(std::uint64_t value);
  VarintWriter& put_signed(std::int64_t value);  // small ones, of either sign, are short
  VarintWriter& append(std::string_view bytes);
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  std::string take();

 private:
  std::string bytes_;
};

/// Reads bytes that may come from anywhere. Once a number is incomplete, too long or out of its bound, the reader stays
/// not good(), and everything that it returns is 0 or empty. The bytes must outlive it.
class VarintReader {
 public:
  explicit VarintReader(std::string_view bytes) : left_(bytes) {}

  std::uint64_t take();
  std::uint64_t take(std::uint64_t max);
  std::int64_t take_signed();
  std::string_view take_bytes(std::uint64_t size);
  void expect(bool condition) { good_ = good_ && condition; }
  [[nodiscard]] bool good() const { return good_; }
  /// Everything was good, and nothing is left.
  [[nodiscard]] bool whole() const { return good_ && left_.empty(); }

 private:
  std::string_view left_;
  bool good_ = true;
};

}  // namespace ssdpulse::util
