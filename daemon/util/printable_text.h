// SPDX-License-Identifier: Apache-2.0
// printable_text(): a name from hardware, fit for a label and for a field of a log line: no padding at the ends, '?'
// for all but printable ASCII and for quotes and backslashes, which would end the field.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace ssdpulse::util {

inline std::string printable_text(std::string_view text) {
  constexpr std::string_view kPadding(" \0\t\r\n", 5);
  const std::size_t first = text.find_first_not_of(kPadding);
  if (first == std::string_view::npos) {
    return {};
  }
  std::string result(text.substr(first, text.find_last_not_of(kPadding) - first + 1));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < 0x20 || c > 0x7e || c == '"' || c == '\\'; }, '?');
  return result;
}

}  // namespace ssdpulse::util
