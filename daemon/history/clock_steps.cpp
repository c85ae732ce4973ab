// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/clock_steps.h"

#include <algorithm>

namespace ssdpulse::history {
namespace {

/// A clock that was behind jumps forward again, over what it showed before it went back: then that was right. One that
/// was ahead comes there by and by.
Outcome<void> undo_steps(Connection& connection, std::int64_t from, std::int64_t to) {
  Statement rows(
      connection,
      "DELETE FROM clock_step WHERE before > ?1 - ?3 AND before <= ?2 + ?3 AND ?2 - ?1 >= (before - wall) / 2");
  return rows.with(from).with(to).with(kSameClock).run();
}

Outcome<void> keep_step(Connection& connection, const ClockStep& step, std::int64_t measured) {
  constexpr std::int64_t kMaxSteps = 300;
  Statement row(connection, "INSERT INTO clock_step (measured, wall, before) VALUES (?, ?, ?)");
  return row.with(measured).with(step.to).with(step.from).run().and_then([&] {
    return connection.execute("DELETE FROM clock_step WHERE id <= (SELECT max(id) FROM clock_step) - " +
                              std::to_string(kMaxSteps));
  });
}

}  // namespace

Outcome<std::optional<ClockStep>> read_clocks(Connection& connection, Account& account, const ClockReading& now) {
  account.measured_ms += std::max<std::int64_t>(now.elapsed.count(), 0);
  const std::int64_t wall = number_of(now.wall);
  if (wall < kClockUnset) {
    return std::nullopt;
  }
  const ClockStep step{account.wall, wall};
  const std::int64_t jump = wall - account.wall - (account.measured() - account.wall_measured);
  const bool first = account.wall == 0;
  account.wall = wall;
  account.wall_measured = account.measured();
  if (!first && step.to < step.from - kSameClock) {
    return keep_step(connection, step, account.measured()).map([&] { return std::optional(step); });
  }
  if (!first && jump > kSameClock) {
    return undo_steps(connection, step.from, step.to).map([] { return std::optional<ClockStep>(); });
  }
  return std::nullopt;
}

Outcome<void> forget_steps(Connection& connection, std::int64_t oldest) {
  Statement rows(connection, "DELETE FROM clock_step WHERE measured < ?");
  return rows.with(oldest).run();
}

std::string stamped_ahead(const std::string& table, const std::string& minute) {
  return "EXISTS (SELECT 1 FROM clock_step WHERE clock_step.measured >= " + table + ".measured AND clock_step.wall + " +
         std::to_string(kSameClock) + " < " + table + "." + minute + ")";
}

std::string row_ahead(const std::string& table) {
  return stamped_ahead(table, "at % " + std::to_string(kMinutesOfADevice));
}

}  // namespace ssdpulse::history
