// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/account.h"

#include <array>

namespace ssdpulse::history {

Outcome<std::optional<Account>> load_account(Connection& connection) {
  Statement row(connection,
                "SELECT measured_ms, wall, wall_measured, drive_minutes_thinned_to, tenant_bytes FROM account");
  return row.step().and_then([&](bool there) -> Outcome<std::optional<Account>> {
    if (!there) {
      return std::nullopt;
    }
    std::array<std::int64_t, 5> values{};
    for (int column = 0; column < 5; ++column) {
      const auto value = row.integer(column);
      if (!value) {
        return tl::unexpected(Failure{"its account has a value that is not a number", true});
      }
      values.at(static_cast<std::size_t>(column)) = *value;
    }
    return Account{values[0], values[1], values[2], values[3], values[4]};
  });
}

Outcome<void> save_account(Connection& connection, const Account& account) {
  Statement row(connection, "INSERT OR REPLACE INTO account VALUES (1, ?, ?, ?, ?, ?)");
  return row.with(account.measured_ms)
      .with(account.wall)
      .with(account.wall_measured)
      .with(account.drive_minutes_thinned_to)
      .with(account.tenant_bytes)
      .run();
}

}  // namespace ssdpulse::history
