// SPDX-License-Identifier: Apache-2.0
// A field of a log line: a value with a name of ours, `device=sda` or `reason="no answer"` in the line's text, and by
// itself in the journal and in JSON. Fields are made where the line is made, and never found in its text: no words of
// others become one.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace ssdpulse::log {

/// At most 40 bytes of lower-case letters, digits and `_`, a letter first: with our prefix, the journal takes it. Any
/// other does not compile.
struct FieldName {
  consteval FieldName(const char* name) : text(name) {  // NOLINT(google-explicit-constructor): a literal is a name
    constexpr std::size_t kMaxBytes = 40;
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
    if (text.empty() || text.size() > kMaxBytes || kLetters.find(text[0]) == std::string_view::npos ||
        text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string_view::npos) {
      throw "not a name of a field";
    }
  }
  std::string_view text;
};

/// One without a name is absent: it is no field, and has no text.
struct Field {
  std::string_view name;
  std::string value;  // without the quotes
  bool quoted = false;
};

template <typename Value>
Field field(FieldName name, const Value& value) {
  return {name.text, fmt::vformat("{}", fmt::make_format_args(value))};
}
/// As in `field("seconds", "{:.3f}", seconds)`.
template <typename Value, typename... Values>
Field field(FieldName name, fmt::format_string<const Value&, const Values&...> format, const Value& value,
            const Values&... values) {
  return {name.text, fmt::format(format, value, values...)};
}
/// For a value that may have blanks.
template <typename Value>
Field quoted(FieldName name, const Value& value) {
  return {name.text, fmt::vformat("{}", fmt::make_format_args(value)), true};
}

}  // namespace ssdpulse::log

template <>
struct fmt::formatter<ssdpulse::log::Field> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  auto format(const ssdpulse::log::Field& field, format_context& context) const {
    const std::string_view quote = field.quoted ? "\"" : "";
    return field.name.empty() ? context.out()
                              : fmt::format_to(context.out(), "{}={}{}{}", field.name, quote, field.value, quote);
  }
};
