// SPDX-License-Identifier: Apache-2.0
// Store: minutes to rows, and rows to minutes. One transaction per batch, which also deletes what is old or surplus.
// Age is the time that was measured since a row was written; the wall clock deletes nothing, whatever it shows.
// For one thread. The caller decides whether to retry after a failure, and what happens to the file.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/history/account.h"
#include "daemon/history/account_check.h"
#include "daemon/history/clock_steps.h"
#include "daemon/history/database_file.h"
#include "daemon/history/device_rows.h"
#include "daemon/history/rows.h"
#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

inline constexpr std::uint64_t kMinSizeLimit = std::uint64_t{1} << 20U;

struct StoreLimits {
  std::chrono::minutes retention = std::chrono::hours(90 * 24);
  std::uint64_t bytes = std::uint64_t{512} << 20U;  // of the database; at least kMinSizeLimit
};

class Store {
 public:
  /// For `checked` and `stop`, see open_database.
  static Outcome<Store> open(const std::string& path, const StoreLimits& limits, std::optional<FileIdentity>& checked,
                             const std::atomic<bool>& stop);

  struct Written {
    RowLedger rows;                      // what became of them in this one
    std::optional<ClockStep> step_back;  // of the wall clock
    model::PastReach reach;
    std::map<std::string, std::uint64_t> unreadable = {};  // by table, since the file was begun; only where any
    std::string corrected = {};                            // what the file said of itself that was wrong, if it did
    std::vector<model::WallTime> marks = {};               // when each of the batch is kept as having been made
  };
  /// On the disk when it returns. After a failure, nothing of the batch is there (nor is the time that it measured),
  /// and the Store cannot be used any more, unless only the batch was refused.
  Outcome<Written> write(const Batch& batch, const ClockReading& now);

  /// From `since` to `until`, both included.
  Outcome<Recalled> recall(const DriveKey& drive, Minute since, Minute until);

  [[nodiscard]] std::uint64_t bytes_on_disk() const;  // with the journal
  /// What the file says of itself is wrong until the next write.
  [[nodiscard]] bool is_uncorrected() const { return disagreement_.has_value(); }

 private:
  Store(Connection connection, std::string path, const StoreLimits& limits)
      : connection_(std::move(connection)), path_(std::move(path)), limits_(limits) {}

  Outcome<Written> write_within_transaction(const Batch& batch, const ClockReading& now);
  Outcome<void> make_room(Account& account);
  Outcome<void> plan_upkeep(const Account& account);
  Outcome<void> delete_old_rows(Account& account, bool too_much, bool all_lanes, DeviceRows& devices);
  Outcome<void> delete_older(Account& account, std::int64_t end, Removal why, bool all_lanes, DeviceRows& devices);
  Outcome<model::PastReach> reach_after(const Batch& batch, Account& account, const RowLedger& changes);
  Outcome<std::optional<std::int64_t>> oldest_row(DeviceRows& devices);
  Outcome<void> forget_drives(std::int64_t end, RowLedger& ledger);
  Outcome<void> thin_drive_minutes(Account& account);
  Outcome<std::uint64_t> delete_drive_minutes(std::int64_t end, Removal why, RowLedger& ledger);
  Outcome<void> give_space_back();
  Outcome<std::int64_t> id_of(const DriveKey& drive, Account& account);
  Outcome<void> insert(const DriveMinute& row, Account& account);
  Outcome<void> save(const DriveState& state, Account& account);
  Outcome<void> insert(const model::LatencySpike& spike, Account& account);
  Outcome<void> insert_events(const Batch& batch, Account& account, Written& written);
  Outcome<bool> is_full();
  Outcome<std::optional<DriveState>> saved_state(const DriveKey& drive);

  Connection connection_;
  std::string path_;
  StoreLimits limits_;
  DeviceRows::OpenLanes open_lanes_ = {};
  std::optional<AccountCheck> disagreement_ = {};  // to be corrected by the next write
  // What goes through all lanes is done the more rarely the more lanes there are.
  std::int64_t upkeep_at_ = 0;  // measured minutes
  std::optional<model::PastReach> reach_ = {};
};

}  // namespace ssdpulse::history
