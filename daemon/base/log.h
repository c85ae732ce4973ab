// SPDX-License-Identifier: Apache-2.0
// The log: one line per event on stderr, as in `log::warning("{} is gone", field("device", name))`. Field: a value with
// a name, `device=sda` or `reason="no answer"` in the line's text, and by itself in the journal and in JSON. Fields are
// made where the line is made, and never found in its text, so that no text from outside becomes one. spdlog writes the
// lines; only log.cpp includes it, because each file that does takes seconds longer to compile.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "daemon/base/result.h"

namespace ssdpulse::log {

/// At most 40 bytes of lower-case letters, digits and `_`, a letter first: with our prefix, the journal takes it. Other
/// names do not compile.
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

/// Without a name, it is absent: neither in the text nor among the fields of a line.
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

namespace ssdpulse::log {

/// Where lines go when stderr is systemd's journal: directly to the journal, with separate fields (log_output.h); or to
/// stderr, for a process that keeps no other socket.
enum class InJournal { fields, lines };

/// `text`: for people, with fields for the journal. `json`: one object per line on stderr, whatever reads it.
enum class Format { text, json };

/// By what the operator should do: error = we are exiting, warning = less is measured, info = life cycle, debug = for
/// us.
enum class Level { debug, info, warning, error };

/// In a minute. Names in lines come from outside, and can cause many lines.
inline constexpr std::uint64_t kMaxLinesPerKind = 120;

/// The format of a line, checked at compile time: its `{}` stand for the first arguments, and the arguments that remain
/// are fields, which follow the text, each after a blank.
template <typename... Arguments>
struct CheckedFormat {
  consteval CheckedFormat(const char* text) : format(text) {  // NOLINT(google-explicit-constructor), as fmt's
    const std::string_view view(text);
    placeholders = static_cast<std::size_t>(std::count(view.begin(), view.end(), '{'));
    if (view.find("={") != std::string_view::npos || view.find("=\"{") != std::string_view::npos) {
      throw "a value with a name is a field";
    }
    const std::array<bool, sizeof...(Arguments)> are_fields{std::is_same_v<Arguments, Field>...};
    for (std::size_t i = placeholders; i < are_fields.size(); ++i) {
      if (!are_fields.at(i)) {
        throw "neither a field nor named by the format";
      }
    }
  }
  fmt::format_string<Arguments...> format;
  std::size_t placeholders = 0;
};
template <typename... Arguments>
using LineFormat = CheckedFormat<std::type_identity_t<Arguments>...>;

/// As it will be written. Of warnings and infos of one kind, those beyond kMaxLinesPerKind are left out and counted.
struct Line {
  Level level = Level::info;
  std::string_view kind;  // its format
  std::string text;
  std::vector<Field> fields;  // without absent ones
};

/// `fields`: the arguments that are fields, null for others; `placeholders`: how many arguments the format names.
Line make_line(Level level, fmt::string_view format, std::size_t placeholders, fmt::format_args arguments,
               std::span<const Field* const> fields);

inline const Field* as_field(const Field& field) { return &field; }
template <typename Argument>
const Field* as_field(const Argument& /*argument*/) {
  return nullptr;
}

template <typename... Arguments>
Line line(Level level, LineFormat<Arguments...> format, const Arguments&... arguments) {
  const std::array<const Field*, sizeof...(Arguments)> fields{as_field(arguments)...};
  return make_line(level, format.format, format.placeholders, fmt::make_format_args(arguments...), fields);
}

/// If its level is enabled. Thread-safe.
void write(const Line& line);

template <typename... Arguments>
void debug(LineFormat<Arguments...> format, const Arguments&... arguments) {
  write(line(Level::debug, format, arguments...));
}
template <typename... Arguments>
void info(LineFormat<Arguments...> format, const Arguments&... arguments) {
  write(line(Level::info, format, arguments...));
}
template <typename... Arguments>
void warning(LineFormat<Arguments...> format, const Arguments&... arguments) {
  write(line(Level::warning, format, arguments...));
}
template <typename... Arguments>
void error(LineFormat<Arguments...> format, const Arguments&... arguments) {
  write(line(Level::error, format, arguments...));
}

/// Sends all lines from now on to stderr. Under journald (JOURNAL_STREAM names our stderr) lines that go there carry
/// the priority prefix "<3>".."<7>", elsewhere a time stamp; lines that the journal does not accept with their fields
/// go there too. `level`: debug, info, warning or error; `format`: text or json. May be called again.
util::Result<void> set_up(const std::string& level, InJournal in_journal = InJournal::fields,
                          Format format = Format::text);

/// Lines left out so far.
std::uint64_t lines_left_out();
/// Logs how many were left out since the last call, if any. To be called once a minute.
void report_left_out();

/// Which lines are too many. There are as many kinds as our code has formats of lines. Thread-safe.
class KindLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  bool admit(std::string_view kind, Clock::time_point now = Clock::now());
  [[nodiscard]] std::uint64_t left_out() const;

 private:
  struct Minute {
    Clock::time_point begin;
    std::uint64_t lines = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Minute> minutes_;
  std::uint64_t left_out_ = 0;
};

/// Nothing for any other name.
std::optional<Format> format_by_name(const std::string& name);

/// Admits at most one line per interval and key, and counts the others. Thread-safe; remembers a bounded number of
/// keys; keys beyond it share an entry.
///
///     if (const auto suppressed = limiter.admit("poll " + device)) {
///       log::warning("cannot poll", field("device", device), field("suppressed", *suppressed));
///     }
class Limiter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Limiter(Clock::duration interval, std::size_t max_keys = 256);

  /// Nothing: stay silent. Otherwise: how many of this key were suppressed since the last line admitted.
  std::optional<std::uint64_t> admit(const std::string& key, Clock::time_point now = Clock::now());

 private:
  struct Entry {
    Clock::time_point admitted;
    std::uint64_t suppressed = 0;
  };

  void forget_expired(Clock::time_point now);

  Clock::duration interval_;
  std::size_t max_keys_;
  std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace ssdpulse::log
