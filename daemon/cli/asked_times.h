// SPDX-License-Identifier: Apache-2.0
// parse_time(): the moment that a person means by a text such as "03:00" or "-10m"; PastWindows: the windows of the
// past that a command line asks for. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/model/history_answers.h"
#include "exporters/report/report_maker.h"

namespace ssdpulse::cli {

using WallTime = std::chrono::system_clock::time_point;

/// "03:00", "03:00:12" (the last such time), "2026-11-23 03:00", "2026-11-23T03:00:12", all in local time or, with a Z
/// at the end, in UTC; "-10m" (s, m, h, d ago); "@1763866800" (seconds since the epoch). Anything else is an error.
util::Result<WallTime> parse_time(const std::string& text, WallTime now);

/// As given on the command line; empty: not given. `change` takes precedence, then `last`.
struct AskedWindows {
  std::string before = {};     // FROM..TO, or a duration that ends where `after` begins
  std::string after = {};      // FROM..TO, or a duration that ends now
  std::string change = {};     // a time, or "last"
  std::string last = {};       // a duration that ends now
  std::string settle = "10m";  // what --change leaves out after the change
  std::string width = "24h";   // the most that --change takes on either side
};

using report::PastWindows;

/// "2026-11-23T09:00..2026-11-23T17:00", "-2h..-1h" (times as in parse_time(); without TO: until now), or "2h". Whole
/// minutes, at least one; cut off at `now`.
util::Result<model::Window> parse_window(const std::string& text, WallTime now);

/// `marks` and `settings`: all that is known, for --change last.
util::Result<PastWindows> find_windows(const AskedWindows& asked, WallTime now, const std::vector<model::Mark>& marks,
                                       const std::vector<model::SettingChange>& settings);

}  // namespace ssdpulse::cli
