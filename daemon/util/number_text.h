// SPDX-License-Identifier: Apache-2.0
// Numbers as people write them: 0.5, 12.3, 123456, 1 minute, 3 flushes. Never with an exponent.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace ssdpulse::util {

/// Three digits, all of those before the point, and no zeroes at the end; smaller than a thousandth: <0.001.
inline std::string number_text(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || size >= 1e15) {
    return fmt::format("{:.3g}", value);
  }
  if (size > 0 && size < 0.001) {
    return value > 0 ? "<0.001" : ">-0.001";
  }
  std::string text = fmt::format("{:.{}f}", value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    text.erase(text.back() == '.' ? text.size() - 1 : text.size());
  }
  return text;
}

/// minutes, flushes
inline std::string plural_text(std::string_view word) {
  const bool hisses = word.ends_with("sh") || word.ends_with("ch") || word.ends_with("s");
  return std::string(word) + (hisses ? "es" : "s");
}

/// 1 minute, 2 minutes
inline std::string count_text(std::uint64_t count, std::string_view word) {
  return fmt::format("{} {}", count, count == 1 ? std::string(word) : plural_text(word));
}

}  // namespace ssdpulse::util
