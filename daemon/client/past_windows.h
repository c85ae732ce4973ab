// SPDX-License-Identifier: Apache-2.0
// Which windows of the past does a person mean? Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "daemon/client/time_text.h"
#include "daemon/model/past.h"
#include "daemon/util/result.h"

namespace ssdpulse::client {

/// As given on the command line; empty: not given.
struct AskedWindows {
  std::string before = {};  // FROM..TO, or a duration that ends where `after` begins
  std::string after = {};   // FROM..TO, or a duration that ends now
  std::string change = {};  // a time, or "last"
  std::string last = {};    // a duration that ends now
  std::string settle = "10m";
  std::string width = "24h";  // the most that --change takes on either side
};

struct PastWindows {
  std::optional<model::Window> before;
  model::Window after;
  std::string change;  // in words: what lies between the two
};

/// "2026-11-23T09:00..2026-11-23T17:00", "-2h..-1h" (times as in time_text.h; without TO: until now), or "2h". At least
/// a minute, and not beyond `now`.
util::Result<model::Window> parse_window(const std::string& text, WallTime now);

/// `marks` and `settings`: all that is known, for --change last.
util::Result<PastWindows> find_windows(const AskedWindows& asked, WallTime now, const std::vector<model::Mark>& marks,
                                       const std::vector<model::SettingChange>& settings);

}  // namespace ssdpulse::client
