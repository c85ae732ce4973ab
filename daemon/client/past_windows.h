// SPDX-License-Identifier: Apache-2.0
// PastWindows: the windows of the past that a command line asks for. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "daemon/client/time_text.h"
#include "daemon/model/past.h"
#include "daemon/util/result.h"

namespace ssdpulse::client {

/// As given on the command line; empty: not given. `change` takes precedence, then `last`.
struct AskedWindows {
  std::string before = {};     // FROM..TO, or a duration that ends where `after` begins
  std::string after = {};      // FROM..TO, or a duration that ends now
  std::string change = {};     // a time, or "last"
  std::string last = {};       // a duration that ends now
  std::string settle = "10m";  // what --change leaves out after the change
  std::string width = "24h";   // the most that --change takes on either side
};

struct PastWindows {
  std::optional<model::Window> before;  // absent: one window alone was asked for
  model::Window after;
  std::string change;  // in words: what lies between the two; empty: not known
};

/// "2026-11-23T09:00..2026-11-23T17:00", "-2h..-1h" (times as in time_text.h; without TO: until now), or "2h". Whole
/// minutes, at least one; cut off at `now`.
util::Result<model::Window> parse_window(const std::string& text, WallTime now);

/// `marks` and `settings`: all that is known, for --change last.
util::Result<PastWindows> find_windows(const AskedWindows& asked, WallTime now, const std::vector<model::Mark>& marks,
                                       const std::vector<model::SettingChange>& settings);

}  // namespace ssdpulse::client
