// SPDX-License-Identifier: Apache-2.0
// The log: one line per event on stderr, as in `log::warning("device={} ...", ...)`.
// spdlog writes the lines; only log.cpp includes it, because each file that does takes seconds longer to compile.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "daemon/util/result.h"

namespace ssdpulse::log {

/// Where lines go when stderr is systemd's journal: directly to the journal, with separate fields (journal.h); or to
/// stderr, for a process that keeps no other socket.
enum class InJournal { fields, lines };

/// `text`: for people, with fields for the journal. `json`: one object per line on stderr, whatever reads it.
enum class Format { text, json };

/// By what the operator should do: error = we are exiting, warning = less is measured, info = life cycle, debug = for
/// us.
enum class Level { debug, info, warning, error };

/// So many lines of one kind in a minute: others choose many names, and cause many lines.
inline constexpr std::uint64_t kMaxLinesPerKind = 120;

/// One line, if this level is enabled. The functions below check the format at compile time. Of warnings and infos,
/// those beyond kMaxLinesPerKind are left out and counted; a kind is a format or, if that is "{}", how the line begins.
/// Thread-safe.
void write(Level level, fmt::string_view format, fmt::format_args arguments);

template <typename... Arguments>
void debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write(Level::debug, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write(Level::info, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void warning(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write(Level::warning, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write(Level::error, format, fmt::make_format_args(arguments...));
}

/// Sends all lines from now on to stderr. Under journald (JOURNAL_STREAM names our stderr) lines that go there carry
/// the priority prefix "<3>".."<7>", elsewhere a time stamp; lines that the journal does not accept with their fields
/// go there too. `level`: debug, info, warning or error; `format`: text or json. May be called again.
util::Result<void> set_up(const std::string& level, InJournal in_journal = InJournal::fields,
                          Format format = Format::text);

/// Lines left out so far.
std::uint64_t lines_left_out();
/// One line about those that were left out since the last call, if there are any. To be called once a minute.
void report_left_out();

/// Which lines are too many? Of up to 500 kinds; all others are one. Not thread-safe.
class KindLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  bool admit(std::string_view kind, Clock::time_point now);
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  struct Minute {
    Clock::time_point begin;
    std::uint64_t lines = 0;
  };

  std::map<std::string, Minute, std::less<>> minutes_;
  std::uint64_t left_out_ = 0;
};

/// Nothing for any other name.
std::optional<Format> format_by_name(const std::string& name);

/// "At most once per interval and key, and say how many were left out." Thread-safe; remembers a bounded number of
/// keys; those beyond it share one.
///
///     if (const auto suppressed = limiter.admit("poll " + device)) {
///       log::warning("cannot poll device={} suppressed={}", device, *suppressed);
///     }
class Limiter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Limiter(Clock::duration interval, std::size_t max_keys = 256);

  /// Nothing: stay silent. Otherwise: how many of this key were suppressed since the last one admitted.
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
