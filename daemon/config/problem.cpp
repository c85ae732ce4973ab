// SPDX-License-Identifier: Apache-2.0
// How a problem reads to the operator.
#include "daemon/config/problem.h"

#include <cstddef>

namespace ssdpulse::config {

std::string to_string(const Problem& problem) {
  std::string place = problem.file;
  if (problem.line > 0) {
    place += ':' + std::to_string(problem.line) + ':' + std::to_string(problem.column);
  }
  return place + ": " + problem.message;
}

std::string to_string(const std::vector<Problem>& problems) {
  std::string lines;
  for (const Problem& problem : problems) {
    lines += to_string(problem) + '\n';
  }
  return lines;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMaxQuotedBytes = 60;  // so that a message stays a line or two of a terminal
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "'";
  for (const char c : text.substr(0, kMaxQuotedBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      result += c;
    } else {
      result += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 0xfU]};
    }
  }
  return result + (text.size() > kMaxQuotedBytes ? "...'" : "'");
}

}  // namespace ssdpulse::config
