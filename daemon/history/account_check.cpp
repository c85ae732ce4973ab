// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/account_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "daemon/history/clock_steps.h"
#include "daemon/history/rows.h"

namespace ssdpulse::history {
namespace {

struct Newest {
  std::int64_t measured = 0;  // of any row
  std::int64_t minute = 0;    // the latest stamp of a minute; 0: none
};

bool has_column_measured(std::string_view table) { return table != "device" && table != "drive" && table != "tenant"; }

/// How many rows a table has.
Outcome<std::int64_t> count(Connection& connection, const std::string& table, Newest& newest) {
  const std::string measured = has_column_measured(table) ? "measured" : "last_measured";
  const std::string minute = table == "device_minute"  ? "max(at % " + std::to_string(kMinutesOfADevice) + ")"
                             : table == "drive_minute" ? std::string("max(minute)")
                                                       : std::string("0");
  // Nobody measures for so long: such a row does not move the clock.
  const std::string plausible = "iif(" + measured + " BETWEEN 0 AND 4294967295, " + measured + ", 0)";
  Statement row(connection, ("SELECT count(*), max(" + plausible + "), " + minute + " FROM " + table).c_str());
  return row.step().map([&](bool) {
    newest.measured = std::max(newest.measured, row.integer(1).value_or(0));
    newest.minute = std::max(newest.minute, row.integer(2).value_or(0));
    return row.integer(0).value_or(0);
  });
}

class Values {
 public:
  explicit Values(AccountCheck& check) : check_(check) {}

  void expect(const char* name, std::int64_t& value, std::int64_t least, std::int64_t most, std::int64_t right) {
    if (value < least || value > most) {
      check_.wrong_values.push_back(fmt::format("{} is {}, but must be {} to {}", name, value, least, most));
      value = right;
    }
  }

 private:
  AccountCheck& check_;
};

/// Of the clocks: rows are written every minute, so that `measured` cannot be far from the newest row unless the wall
/// clock has gone as far since.
void check_clocks(const Newest& newest, Values values, Account& account) {
  constexpr std::int64_t kMillisecondsOfAMinute = 60'000;
  constexpr std::int64_t kDay = 24 * kHour;
  constexpr std::int64_t kLastMinute = kMinutesOfADevice - 1;
  values.expect("wall", account.wall, 0, kLastMinute, newest.minute);
  const std::int64_t since = newest.minute == 0 ? kLastMinute : std::max<std::int64_t>(account.wall - newest.minute, 0);
  const std::int64_t least = newest.measured * kMillisecondsOfAMinute;
  values.expect("measured_ms", account.measured_ms, least, least + (since + kDay) * kMillisecondsOfAMinute, least);
  values.expect("wall_measured", account.wall_measured, 0, account.measured(), account.measured());
  values.expect("drive_minutes_thinned_to", account.drive_minutes_thinned_to, 0, account.measured(), 0);
  values.expect("minutes_reach", account.minutes_reach, 0, kLastMinute, 0);
  values.expect("hours_reach", account.hours_reach, 0, kLastMinute, 0);
}

}  // namespace

std::string AccountCheck::text() const {
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
  for (const auto& [table, lost] : missing) {
    add(lost > 0 ? fmt::format("{} rows of {} are missing", lost, table)
                 : fmt::format("{} rows of {} were added by another program", -lost, table));
  }
  std::for_each(wrong_values.begin(), wrong_values.end(), add);
  return text;
}

Outcome<AccountCheck> check_account(Connection& connection) {
  const auto account = load_account(connection);
  if (!account) {
    return tl::unexpected(account.error());
  }
  AccountCheck check;
  check.account = account->value_or(Account{});
  Newest newest;
  for (const std::string table : kTables) {
    const auto rows = count(connection, table, newest);
    if (!rows) {
      return tl::unexpected(rows.error());
    }
    check.rows[table] = static_cast<std::uint64_t>(*rows);
    if (const std::int64_t missing = check.account.rows.at(table).present() - *rows; missing > 0) {
      check.missing[table] = missing;
      check.account.rows.remove(table, Removal::unreadable, static_cast<std::uint64_t>(missing));
    } else if (missing < 0) {
      check.missing[table] = missing;
      check.account.rows.insert(table, static_cast<std::uint64_t>(-missing));
    }
  }
  const Values values(check);
  check_clocks(newest, values, check.account);
  return connection
      .number(
          "SELECT (SELECT coalesce(sum(length(tenants)), 0) FROM tenant_minute) + (SELECT "
          "coalesce(sum(length(tenants)), 0) FROM tenant_hour)")
      .map([&](std::int64_t tenant_bytes) {
        Values(check).expect("tenant_bytes", check.account.tenant_bytes, tenant_bytes, tenant_bytes, tenant_bytes);
        return std::move(check);
      });
}

}  // namespace ssdpulse::history
