// SPDX-License-Identifier: Apache-2.0
// The log: one line per event on stderr, as in `log::warning("device={} ...", ...)`.
// spdlog writes the lines; only log.cpp includes it, because each file that does takes seconds longer to compile.
#pragma once

#include <fmt/core.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
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

/// One line, if this level is enabled. The functions below check the format at compile time. Thread-safe.
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
