// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/account.h"

#include <array>
#include <string>
#include <utility>

namespace ssdpulse::history {

model::PastReach reach_of(const Account& account) {
  const auto known = [](std::int64_t minute) {
    return minute == 0 ? std::nullopt : std::optional<model::PastTime>(minute_of(minute));
  };
  return {known(account.minutes_reach), known(account.hours_reach)};
}

Outcome<std::optional<Account>> load_account(Connection& connection) {
  Statement row(connection,
                "SELECT measured_ms, wall, wall_measured, drive_minutes_thinned_to, tenant_bytes, minutes_reach, "
                "hours_reach FROM account");
  return row.step().and_then([&](bool there) -> Outcome<std::optional<Account>> {
    if (!there) {
      return std::nullopt;
    }
    std::array<std::int64_t, 7> values{};
    for (int column = 0; column < 7; ++column) {
      const auto value = row.integer(column);
      if (!value) {
        return tl::unexpected(Failure{"its account has a value that is not a number", true});
      }
      values.at(static_cast<std::size_t>(column)) = *value;
    }
    return RowLedger::load(connection).map([&](RowLedger rows) -> std::optional<Account> {
      return Account{values[0], values[1], values[2], values[3], values[4], values[5], values[6], std::move(rows)};
    });
  });
}

Outcome<void> save_account(Connection& connection, const Account& account) {
  Statement row(connection, "INSERT OR REPLACE INTO account VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)");
  const std::string rows = account.rows.json();
  return row.with(account.measured_ms)
      .with(account.wall)
      .with(account.wall_measured)
      .with(account.drive_minutes_thinned_to)
      .with(account.tenant_bytes)
      .with(account.minutes_reach)
      .with(account.hours_reach)
      .with(rows)
      .run();
}

}  // namespace ssdpulse::history
