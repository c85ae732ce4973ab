// SPDX-License-Identifier: Apache-2.0
// Splits lines into fields. A line is never lost because of its fields: what cannot be split stays text.
#include "daemon/util/line_fields.h"

#include <algorithm>
#include <cstddef>

namespace ssdpulse::log {
namespace {

constexpr std::size_t kMaxFields = 24;
constexpr std::size_t kMaxKeyBytes = 40;

bool is_key_character(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

bool is_key(std::string_view text) {
  return !text.empty() && text.size() <= kMaxKeyBytes && text[0] >= 'a' && text[0] <= 'z' &&
         std::all_of(text.begin(), text.end(), is_key_character);
}

// `rest` begins after the "=": removes the value from it. A quoted value ends at a quote before a blank or the end.
std::string_view take_value(std::string_view& rest) {
  std::size_t begin = 0;
  std::size_t end = 0;
  if (!rest.empty() && rest[0] == '"') {
    begin = 1;
    do {
      end = rest.find('"', end + 1);
    } while (end != std::string_view::npos && end + 1 < rest.size() && rest[end + 1] != ' ');
  } else {
    end = rest.find(' ');
  }
  end = std::min(end, rest.size());
  const auto value = rest.substr(begin, end - begin);
  rest.remove_prefix(end);
  return value;
}

}  // namespace

std::vector<std::pair<std::string_view, std::string_view>> fields_of(std::string_view message) {
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  for (auto rest = message; !rest.empty() && fields.size() < kMaxFields;) {
    const auto word = rest.substr(0, rest.find(' '));
    const auto equals = word.find('=');
    if (equals == std::string_view::npos || !is_key(word.substr(0, equals))) {
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      continue;
    }
    const auto key = word.substr(0, equals);
    rest.remove_prefix(equals + 1);
    const auto value = take_value(rest);
    const bool seen = std::any_of(fields.begin(), fields.end(), [&](const auto& field) { return field.first == key; });
    if (!seen) {
      fields.emplace_back(key, value);
    }
  }
  return fields;
}

}  // namespace ssdpulse::log
