// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/file_account.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace ssdpulse::history {

RowLedger::RowLedger() {
  for (const char* table : model::kTables) {
    tables_[table];
  }
}

RowLedger& RowLedger::operator+=(const RowLedger& other) {
  for (auto& [table, rows] : tables_) {
    const TableRows& more = other.at(table);
    rows.inserted += more.inserted;
    for (std::size_t why = 0; why < rows.removed.size(); ++why) {
      rows.removed.at(why) += more.removed.at(why);
    }
  }
  return *this;
}

RowLedger RowLedger::since(const RowLedger& earlier) const {
  RowLedger added = *this;
  for (auto& [table, rows] : added.tables_) {
    const TableRows& before = earlier.at(table);
    rows.inserted -= before.inserted;
    for (std::size_t why = 0; why < rows.removed.size(); ++why) {
      rows.removed.at(why) -= before.removed.at(why);
    }
  }
  return added;
}

std::string RowLedger::json() const {
  std::string text;
  for (const auto& [table, rows] : tables_) {
    text +=
        fmt::format(R"({}"{}":[{},{}])", text.empty() ? "" : ",", table, rows.inserted, fmt::join(rows.removed, ","));
  }
  return "{" + text + "}";
}

Outcome<RowLedger> RowLedger::load(Connection& connection) {
  // SQLite parses the JSON, which whoever queries the file can use, too. What is not a number becomes -1, which no
  // count can be.
  std::string columns = "SELECT entry.key";
  for (std::size_t i = 0; i <= kRemovalNames.size(); ++i) {
    columns += fmt::format(
        ", CASE coalesce(json_type(entry.value, '$[{0}]'), 'missing') WHEN 'integer' THEN json_extract(entry.value, "
        "'$[{0}]') WHEN 'missing' THEN {1} ELSE -1 END",
        i, i > static_cast<std::size_t>(Removal::unreadable) + 1 ? 0 : -1);  // a reason that its writer did not know
  }
  Statement rows(connection, (columns + " FROM account, json_each(CASE WHEN json_valid(account.rows) THEN account.rows "
                                        "ELSE '{\"\":[]}' END) AS entry")
                                 .c_str());
  RowLedger ledger;
  const auto take = [&]() -> Outcome<void> {
    constexpr std::int64_t kMaxRows = std::int64_t{1} << 53U;  // so that sums are far from 64 bits
    const auto found = ledger.tables_.find(rows.name(0));
    const auto number = [&](std::size_t column) {
      const std::int64_t value = rows.integer(static_cast<int>(column)).value_or(-1);
      return value <= kMaxRows ? value : -1;
    };
    bool right = found != ledger.tables_.end() && number(1) >= 0;
    for (std::size_t why = 0; right && why < kRemovalNames.size(); ++why) {
      right = number(why + 2) >= 0;
      found->second.removed.at(why) = static_cast<std::uint64_t>(number(why + 2));
    }
    if (!right) {
      return tl::unexpected(Failure{"its account of rows is not one", true});
    }
    found->second.inserted = static_cast<std::uint64_t>(number(1));
    return {};
  };
  return rows.each(take).map([&] { return std::move(ledger); });
}

Outcome<void> put(Connection& connection, RowLedger& ledger, std::string_view table, RowBefore before,
                  const std::function<Outcome<void>(const std::string& insert_into)>& insert) {
  // SQLite does not say whether it replaced a row.
  const auto inserted = insert("INSERT OR IGNORE INTO ");
  if (!inserted || connection.changed_rows() > 0) {
    ledger.insert(table, inserted ? 1 : 0);
    return inserted;
  }
  return insert("INSERT OR REPLACE INTO ").map([&] {
    if (before == RowBefore::lost) {
      ledger.insert(table);
      ledger.remove(table, Removal::repeated, 1);
    }
  });
}

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

namespace {

/// A clock that was behind jumps forward again, past what it showed before it went back: then that was right. One that
/// was ahead gets there gradually.
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
  if (number_of(now.wall) < kClockUnset) {
    return std::nullopt;
  }
  const ClockStep step{account.wall, number_of(now.wall)};
  const std::int64_t jump = step.to - step.from - (account.measured() - account.wall_measured);
  account.wall = step.to;
  account.wall_measured = account.measured();
  const bool first = step.from == 0;
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

namespace {

struct Newest {
  std::int64_t measured = 0;  // of any row
  std::int64_t minute = 0;    // the latest stamp of a minute; 0: none
};

/// How many rows a table has.
Outcome<std::int64_t> count_rows(Connection& connection, const std::string& table, Newest& newest) {
  const bool has_names = table == "device" || table == "drive" || table == "tenant";
  const std::string measured = has_names ? "last_measured" : "measured";
  const std::string minute = table == "device_minute"  ? "max(at % " + std::to_string(kMinutesOfADevice) + ")"
                             : table == "drive_minute" ? std::string("max(minute)")
                                                       : std::string("0");
  // Nobody measures for longer than 32 bits of minutes: such a row does not move the clock.
  const std::string plausible = "iif(" + measured + " BETWEEN 0 AND 4294967295, " + measured + ", 0)";
  Statement row(connection, ("SELECT count(*), max(" + plausible + "), " + minute + " FROM " + table).c_str());
  return row.step().map([&](bool) {
    newest.measured = std::max(newest.measured, row.integer(1).value_or(0));
    newest.minute = std::max(newest.minute, row.integer(2).value_or(0));
    return row.integer(0).value_or(0);
  });
}

/// Rows are written every minute, so `measured` cannot be far from the newest row unless the wall clock has gone as far
/// since.
void check_values(const Newest& newest, std::int64_t tenant_bytes, AccountCheck& check) {
  constexpr std::int64_t kMinuteMs = 60'000;
  constexpr std::int64_t kDay = 24 * kHour;
  constexpr std::int64_t kLastMinute = kMinutesOfADevice - 1;
  Account& account = check.account;
  const auto expect = [&](const char* name, std::int64_t& value, std::int64_t min, std::int64_t max,
                          std::int64_t corrected) {
    if (value < min || value > max) {
      check.wrong_values.push_back(fmt::format("{} is {}, but must be {} to {}", name, value, min, max));
      value = corrected;
    }
  };
  expect("wall", account.wall, 0, kLastMinute, newest.minute);
  const std::int64_t since = newest.minute == 0 ? kLastMinute : std::max<std::int64_t>(account.wall - newest.minute, 0);
  const std::int64_t min_ms = newest.measured * kMinuteMs;
  expect("measured_ms", account.measured_ms, min_ms, min_ms + (since + kDay) * kMinuteMs, min_ms);
  expect("wall_measured", account.wall_measured, 0, account.measured(), account.measured());
  expect("drive_minutes_thinned_to", account.drive_minutes_thinned_to, 0, account.measured(), 0);
  expect("minutes_reach", account.minutes_reach, 0, kLastMinute, 0);
  expect("hours_reach", account.hours_reach, 0, kLastMinute, 0);
  expect("tenant_bytes", account.tenant_bytes, tenant_bytes, tenant_bytes, tenant_bytes);
}

}  // namespace

std::string AccountCheck::text() const {
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : "; ") + one; };
  for (const auto& [table, lost] : missing) {
    add(lost > 0 ? fmt::format("rows of {} missing: {}", table, lost)
                 : fmt::format("rows of {} added by another program: {}", table, -lost));
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
  for (const std::string table : model::kTables) {
    const auto rows = count_rows(connection, table, newest);
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
  return connection
      .number(
          "SELECT (SELECT coalesce(sum(length(tenants)), 0) FROM tenant_minute) + (SELECT "
          "coalesce(sum(length(tenants)), 0) FROM tenant_hour)")
      .map([&](std::int64_t tenant_bytes) {
        check_values(newest, tenant_bytes, check);
        return std::move(check);
      });
}

}  // namespace ssdpulse::history
