// SPDX-License-Identifier: Apache-2.0
// Account: what the history file knows of itself: its clocks, how far its upkeep has come, and its RowLedger, what
// became of the rows of each table since the file was created. The file keeps it in the same transaction as the rows:
// rows inserted less rows removed are the rows present, however the daemon ended. AccountCheck compares it with the
// rows.
//
// Ages are in measured minutes, by CLOCK_BOOTTIME; stamps are minutes or milliseconds since the epoch. Clock steps,
// when the wall clock went back, tell which stamps lay in the future; age never depends on them. For one thread, within
// a transaction of the caller's.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/history/sqlite.h"
#include "daemon/model/history_answers.h"
#include "daemon/model/history_rows.h"

namespace ssdpulse::history {

/// Why a row has left its table. The file has them by number: append new ones.
enum class Removal {
  age,         // older than history.retention
  size,        // beyond history.size, or its table's share of it
  hour,        // a minute that became part of an hour
  repeated,    // it said the same as another, or was replaced by a later one of the same minute
  unreadable,  // damaged, or deleted by somebody else
  clock,       // the wall clock went back a little, and the same minute came again
};
inline constexpr auto kRemovalNames = util::names<Removal>({"age", "size", "hour", "repeated", "unreadable", "clock"});

struct TableRows {
  std::uint64_t inserted = 0;
  std::array<std::uint64_t, kRemovalNames.size()> removed{};  // by Removal
  bool operator==(const TableRows&) const = default;

  [[nodiscard]] std::uint64_t all_removed() const { return std::accumulate(removed.begin(), removed.end(), 0ULL); }
  /// Negative: more were removed than there can have been.
  [[nodiscard]] std::int64_t present() const {
    return static_cast<std::int64_t>(inserted) - static_cast<std::int64_t>(all_removed());
  }
};

class RowLedger {
 public:
  using Tables = std::map<std::string, TableRows, std::less<>>;

  RowLedger();  // with all tables

  void insert(std::string_view table, std::uint64_t rows = 1) { of(table).inserted += rows; }
  void remove(std::string_view table, Removal why, std::uint64_t rows) {
    of(table).removed.at(static_cast<std::size_t>(why)) += rows;
  }

  [[nodiscard]] const Tables& tables() const { return tables_; }
  [[nodiscard]] const TableRows& at(std::string_view table) const { return tables_.at(std::string(table)); }
  bool operator==(const RowLedger&) const = default;

  RowLedger& operator+=(const RowLedger& other);
  /// What was added since `earlier`.
  [[nodiscard]] RowLedger since(const RowLedger& earlier) const;

  /// {"mark":[inserted,age,size,...],...}: a column of table account.
  [[nodiscard]] std::string json() const;
  /// From that column; anything else there means a damaged file.
  static Outcome<RowLedger> load(Connection& connection);

 private:
  TableRows& of(std::string_view table) { return tables_.at(std::string(table)); }

  Tables tables_;
};

/// What happens to the content of a row with the same key: it is part of the new one, or lost.
enum class RowBefore { merged, lost };
/// Inserts a row, replacing one with the same key. `insert` runs a statement that begins with `insert_into`.
Outcome<void> put(Connection& connection, RowLedger& ledger, std::string_view table, RowBefore before,
                  const std::function<Outcome<void>(const std::string& insert_into)>& insert);

/// One row; see schema.sql.
struct Account {
  std::int64_t measured_ms = 0;               // by CLOCK_BOOTTIME, of the daemons that kept this file: only ever grows
  std::int64_t wall = 0;                      // minutes since the epoch; the last reading that can be true; 0: none yet
  std::int64_t wall_measured = 0;             // measured minutes at that reading
  std::int64_t drive_minutes_thinned_to = 0;  // measured minutes; older ones are one an hour
  std::int64_t tenant_bytes = 0;              // in tenant_minute and tenant_hour
  std::int64_t minutes_reach = 0;             // minutes since the epoch: the first that is kept; 0: none
  std::int64_t hours_reach = 0;               // likewise
  RowLedger rows = {};
  bool operator==(const Account&) const = default;

  /// In minutes, as all rows have it.
  [[nodiscard]] std::int64_t measured() const { return measured_ms / 60'000; }
};

/// How far back the file goes, by the last write.
model::PastReach reach_of(const Account& account);

/// Nothing if this version has never written a row.
Outcome<std::optional<Account>> load_account(Connection& connection);
Outcome<void> save_account(Connection& connection, const Account& account);

/// Minutes since the epoch.
inline std::int64_t number_of(model::Minute minute) { return minute.time_since_epoch().count(); }
inline model::Minute minute_of(std::int64_t number) { return model::Minute(std::chrono::minutes(number)); }

/// Since the epoch.
inline std::int64_t milliseconds_of(model::WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}
inline model::WallTime time_of(std::int64_t milliseconds) {
  return model::WallTime(std::chrono::milliseconds(milliseconds));
}

inline constexpr std::int64_t kHour = 60;  // minutes

/// The hour that a minute is in: its first minute.
inline std::int64_t hour_of(std::int64_t minute) { return minute - (minute % kHour + kHour) % kHour; }

/// Keys of device_minute and the like. No minute of ours exceeds 32 bits.
inline constexpr std::int64_t kMinutesOfADevice = std::int64_t{1} << 32U;
inline std::int64_t key_of(std::int64_t device, std::int64_t minute) { return device * kMinutesOfADevice + minute; }
inline std::int64_t minute_of_key(std::int64_t key) { return key % kMinutesOfADevice; }

/// Corrections of up to so many minutes are no steps: a row may be stamped that long before an older one.
inline constexpr std::int64_t kSameClock = 2;

/// 2020-01-01, in minutes since the epoch. A clock that shows an earlier time was never set: no daemon is that old.
inline constexpr std::int64_t kClockUnset = 26'297'280;

/// The two clocks when a batch was added.
struct ClockReading {
  model::Minute wall;
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

/// The account compared with the rows: a wrong number in it would delete, or hide, good rows.
struct AccountCheck {
  std::map<std::string, std::uint64_t> rows;    // that are there, of all tables
  std::map<std::string, std::int64_t> missing;  // of tables with more or fewer than the account says; negative: more
  std::vector<std::string> wrong_values;        // NAME is N, but ...
  Account account;                              // as the rows say it is

  [[nodiscard]] bool agrees() const { return missing.empty() && wrong_values.empty(); }
  [[nodiscard]] std::string text() const;
};

/// Reads every table once. A file without an account, which has no rows, agrees with itself.
Outcome<AccountCheck> check_account(Connection& connection);

}  // namespace ssdpulse::history
