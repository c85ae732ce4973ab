// SPDX-License-Identifier: Apache-2.0
// Store writes batches to the history file and reads back what drives reported; DeviceRows keeps what devices did, by
// minute and by hour. Ages are in measured minutes, see file_account.h: the wall clock deletes nothing, whatever it
// shows. For one thread.
//
// DeviceRows adds exactly: everything added is found in the sum of any window, bucket for bucket, even if it comes late
// or twice. The rows of a device lie in lanes, each a row of table device with a number of its own. In a lane, rows go
// forward in both clocks; where the wall clock goes back, another lane goes on. So what a wrong clock stamped never
// touches what a right one does, and the oldest rows are the first of a lane. An hour's row is made once the hour is
// over, and from then on is the sum of its minutes: later additions go to both. After that, minutes can be removed.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/history/database_file.h"
#include "daemon/history/file_account.h"
#include "daemon/history/load_codec.h"
#include "daemon/history/sqlite.h"
#include "daemon/model/history_rows.h"

namespace ssdpulse::history {

/// Works within a transaction of the caller's. Most lanes may be of devices that are gone: what goes through all lanes
/// that have rows is marked (all lanes), and too expensive to call every minute.
class DeviceRows {
 public:
  /// Both must outlive this object. `account` counts what is inserted and removed here.
  DeviceRows(Connection& connection, Account& account) : connection_(connection), account_(account) {}

  Outcome<void> add(const model::DeviceMinute& row);

  /// Lanes that may have minutes of an hour without a row; absent: not known yet, as after a start.
  using OpenLanes = std::optional<std::set<std::int64_t>>;
  /// In each of these lanes, and each that minutes were added to, makes the row of the oldest finished hour that has
  /// none yet. Keeps `open` up to date.
  Outcome<void> make_hours(model::Minute now, OpenLanes& open);

  /// (All lanes.) Removes the minutes of the oldest hour, in all lanes that have one of about that age, if all of it is
  /// older than `end` and its row is made. Returns how many.
  Outcome<std::uint64_t> thin_hour(std::int64_t end);

  /// (All lanes.) Removes hours that are older than `end`, about ten in each lane.
  Outcome<void> forget_hours(std::int64_t end, Removal why);

  /// (All lanes.) Removes the oldest tenant rows: about an hour of minutes or, if there are none, a day of hours.
  Outcome<void> forget_tenants();

  /// (All lanes.) Removes names that no row refers to, of devices not seen since `end`. Their numbers are not reused.
  Outcome<void> forget_names(std::int64_t end);

  /// (All lanes.) The age of the oldest row in a table.
  Outcome<std::optional<std::int64_t>> oldest(const char* table);

  /// (All lanes.) The earliest stamp in a table, without those of a clock that was not set.
  Outcome<std::optional<std::int64_t>> first(const char* table);

 private:
  struct Lane {
    std::int64_t id = 0;
    std::int64_t last_minute = 0;
    std::int64_t last_measured = 0;
    std::int64_t minutes_from = 0;
    std::int64_t hours_made_to = 0;
  };
  struct Row {
    std::int64_t lane = 0;
    std::int64_t minute = 0;
    std::int64_t measured = 0;
  };

  /// The first row of each lane that has any.
  Outcome<std::vector<Row>> fronts(const char* table);
  Outcome<std::set<std::int64_t>> open_lanes();
  Outcome<std::string> identity_of(const model::DeviceKey& device);
  Outcome<void> rename(const model::DeviceKey& device);
  Outcome<Lane> lane_of(const model::DeviceKey& device, std::int64_t minute);
  Outcome<std::int64_t> id_of(const std::string& tenant);
  Outcome<std::optional<Row>> first_of(std::int64_t lane, const char* table, std::int64_t from);
  Outcome<void> make_hour_in(std::int64_t lane, model::Minute now, std::set<std::int64_t>& open);
  Outcome<void> merge(const char* table, std::int64_t key, const model::DeviceInterval& load, std::int64_t measured);
  Outcome<void> merge_tenants(const char* table, std::int64_t key, std::vector<NumberedTenant> tenants,
                              std::int64_t measured);
  Outcome<void> make_hour_of(std::int64_t lane, std::int64_t hour);
  Outcome<std::uint64_t> erase(const char* table, Removal why, std::int64_t lane, std::int64_t from, std::int64_t to);
  Outcome<void> put(const char* table, std::int64_t key, const model::Bytes& bytes, std::int64_t measured);

  Connection& connection_;
  Account& account_;
  std::set<std::int64_t> added_to_;  // lanes
};

inline constexpr std::uint64_t kMinSizeLimit = std::uint64_t{1} << 20U;

struct StoreLimits {
  std::chrono::minutes retention = std::chrono::hours(90 * 24);
  std::uint64_t bytes = std::uint64_t{512} << 20U;  // of the database; at least kMinSizeLimit
};

/// One transaction per batch, which also deletes what is old or surplus. The caller decides whether to retry after a
/// failure, and what happens to the file.
class Store {
 public:
  /// For `checked` and `stop`, see open_database.
  static Outcome<Store> open(const std::string& path, const StoreLimits& limits, std::optional<FileIdentity>& checked,
                             const std::atomic<bool>& stop);

  struct Written {
    RowLedger rows;                      // what became of them in this write
    std::optional<ClockStep> step_back;  // of the wall clock
    model::PastReach reach;
    std::map<std::string, std::uint64_t> unreadable = {};  // by table, since the file was created; only where any
    std::string corrected = {};                            // what was wrong in the file's account; empty: nothing
    std::vector<model::WallTime> marks = {};               // the time under which each of the batch is kept
  };
  /// On the disk when it returns. After a failure, nothing of the batch is there (nor is the time that it measured),
  /// and the Store cannot be used any more, unless only the batch was refused.
  Outcome<Written> write(const model::Batch& batch, const ClockReading& now);

  /// From `since` to `until`, both included.
  Outcome<model::Recalled> recall(const model::DriveKey& drive, model::Minute since, model::Minute until);

  [[nodiscard]] std::uint64_t bytes_on_disk() const;  // with the journal
  /// What the file says of itself is wrong until the next write.
  [[nodiscard]] bool is_uncorrected() const { return disagreement_.has_value(); }

 private:
  Store(Connection connection, std::string path, const StoreLimits& limits)
      : connection_(std::move(connection)), path_(std::move(path)), limits_(limits) {}

  Outcome<Written> write_within_transaction(const model::Batch& batch, const ClockReading& now);
  Outcome<void> make_room(Account& account);
  Outcome<void> plan_upkeep(const Account& account);
  Outcome<void> delete_old_rows(Account& account, bool too_much, bool all_lanes, DeviceRows& devices);
  Outcome<void> delete_older(Account& account, std::int64_t end, Removal why, bool all_lanes, DeviceRows& devices);
  Outcome<void> update_reach(const model::Batch& batch, Account& account, const RowLedger& changes);
  Outcome<std::optional<std::int64_t>> oldest_row(DeviceRows& devices);
  Outcome<void> forget_drives(std::int64_t end, RowLedger& ledger);
  Outcome<void> thin_drive_minutes(Account& account);
  Outcome<void> delete_drive_minutes(std::int64_t end, Removal why, RowLedger& ledger);
  Outcome<void> free_surplus_pages();
  Outcome<std::int64_t> id_of(const model::DriveKey& drive, Account& account);
  Outcome<void> insert(const model::DriveMinute& row, Account& account);
  Outcome<void> save(const model::DriveState& state, Account& account);
  Outcome<void> insert(const model::LatencySpike& spike, Account& account);
  Outcome<void> insert_events(const model::Batch& batch, Account& account, Written& written);
  Outcome<bool> is_full();
  Outcome<std::optional<model::DriveState>> saved_state(const model::DriveKey& drive);

  Connection connection_;
  std::string path_;
  StoreLimits limits_;
  DeviceRows::OpenLanes open_lanes_ = {};
  std::optional<AccountCheck> disagreement_ = {};  // to be corrected by the next write
  std::int64_t upkeep_at_ = 0;  // measured minutes: when to go through all lanes next; the more lanes, the more rarely
  bool knows_reach_ = false;    // the account's is up to date
};

}  // namespace ssdpulse::history
