// SPDX-License-Identifier: Apache-2.0
// $2a$, $2b$ or $2y$, two digits of cost, $, 22 letters of salt and 31 of hash.
#include "daemon/config/password_hash.h"

#include <algorithm>

namespace ssdpulse::config {
namespace {

constexpr std::size_t kLength = 60;
constexpr std::size_t kPrefix = 7;  // $2y$10$
// Each step doubles the time of a login; 14 is about a second.
constexpr int kMinCost = 4;
constexpr int kMaxCost = 14;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '/';
}

}  // namespace

std::optional<std::string> validate_password_hash(std::string_view text) {
  const bool known = text.substr(0, 4) == "$2a$" || text.substr(0, 4) == "$2b$" || text.substr(0, 4) == "$2y$";
  if (!known) {
    return "expected a bcrypt hash, which begins with $2y$, $2b$ or $2a$ (htpasswd -nBC 10 USER makes one)";
  }
  const std::string_view cost = text.substr(4, 2);
  const bool digits = std::all_of(cost.begin(), cost.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (text.size() != kLength || !digits || text[6] != '$' ||
      !std::all_of(text.begin() + kPrefix, text.end(), is_letter)) {
    return "is not a complete bcrypt hash: expected 60 characters, as in $2y$10$ and 53 letters, digits, dots or "
           "slashes";
  }
  const int value = (cost[0] - '0') * 10 + (cost[1] - '0');
  if (value < kMinCost || value > kMaxCost) {
    return "a bcrypt cost of " + std::to_string(value) + "; expected " + std::to_string(kMinCost) + " to " +
           std::to_string(kMaxCost) + ": each step doubles the time of a login, and 14 is a second";
  }
  return std::nullopt;
}

}  // namespace ssdpulse::config
