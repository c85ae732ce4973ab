// SPDX-License-Identifier: Apache-2.0
// Clock steps: when the wall clock went back, and so which stamps lay in the future. Age never depends on it: rows are
// as old as the time measured since they were written.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/history/account.h"
#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

/// Corrections smaller than this are no steps: a row may be stamped that many minutes before one that is older.
inline constexpr std::int64_t kSameClock = 2;

/// 2020-01-01, in minutes since the epoch. A clock that shows an earlier time was never set: no daemon is that old.
inline constexpr std::int64_t kClockUnset = 26'297'280;

/// What the two clocks said when a batch was added.
struct ClockReading {
  Minute wall;
  std::chrono::milliseconds elapsed{};  // by CLOCK_BOOTTIME, since the previous batch that was written
};

/// In minutes since the epoch.
struct ClockStep {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// Moves the account to this reading. Returns a step back, if it was one.
Outcome<std::optional<ClockStep>> read_clocks(Connection& connection, Account& account, const ClockReading& now);

/// Forgets steps that no row is older than. `oldest`: measured minutes.
Outcome<void> forget_steps(Connection& connection, std::int64_t oldest);

/// An SQL expression: whether a row of a table (or of an alias) was stamped by a clock that was ahead. `minute`: its
/// stamp, in minutes since the epoch.
std::string stamped_ahead(const std::string& table, const std::string& minute);
/// The same of device_minute and the like.
std::string row_ahead(const std::string& table);

}  // namespace ssdpulse::history
