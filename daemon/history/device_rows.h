// SPDX-License-Identifier: Apache-2.0
// DeviceRows: what devices did, by minute and by hour, as rows. Adding is exact: everything added is found in the sum
// of any window, word for word, even if it comes late or twice.
//
// The rows of a device lie in lanes, each a row of table device with a number of its own. In a lane, rows go forward in
// both clocks; where the wall clock goes back, another lane goes on. So what a wrong clock stamped never touches what a
// right one does, and the oldest rows are the first of a lane.
//
// An hour's row is made once the hour is over, and from then on is the sum of its minutes: later additions go to both.
// After that, minutes can be removed. Ages are in measured minutes, see account.h. For one thread, within a transaction
// of the caller's.
//
// Most lanes may be of devices that are gone. What goes through all lanes that have rows is marked (all lanes); it is
// not for every minute.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/history/account.h"
#include "daemon/history/load_codec.h"
#include "daemon/history/rows.h"
#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

class DeviceRows {
 public:
  /// Both must outlive this object. `account` counts what is inserted and removed here.
  DeviceRows(Connection& connection, Account& account) : connection_(connection), account_(account) {}

  Outcome<void> add(const DeviceMinute& row);

  /// Lanes that may have minutes of an hour without a row; absent: not known yet, as after a start.
  using OpenLanes = std::optional<std::set<std::int64_t>>;
  /// In each of these lanes, and of those that minutes were added to, makes the row of the oldest finished hour that
  /// has none yet. Keeps `open` up to date.
  Outcome<void> make_hours(Minute now, OpenLanes& open);

  /// (All lanes.) Removes the minutes of the oldest hour, in all lanes that have one of about that age, if all of it is
  /// older than `end` and its row is made. Returns how many.
  Outcome<std::uint64_t> thin_hour(std::int64_t end);

  /// (All lanes.) Removes hours that are older than `end`, about ten in each lane.
  Outcome<std::uint64_t> forget_hours(std::int64_t end, Removal why);

  /// (All lanes.) Removes the oldest tenant rows: about an hour of minutes or, if there are none, a day of hours.
  Outcome<std::uint64_t> forget_tenants();

  /// (All lanes.) Removes names that no row refers to, of devices not since `end`. Their numbers are not given out
  /// again.
  Outcome<void> forget_names(std::int64_t end);

  /// (All lanes.) The age of the oldest row in a table.
  Outcome<std::optional<std::int64_t>> oldest(const char* table);

  /// (All lanes.) The earliest stamp in a table, but for those of a clock that was not set.
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
  Outcome<std::string> identity_of(const DeviceKey& device);
  Outcome<void> rename(const DeviceKey& device);
  Outcome<Lane> lane_of(const DeviceKey& device, std::int64_t minute);
  Outcome<std::int64_t> id_of(const std::string& tenant);
  Outcome<std::optional<Row>> first_of(std::int64_t lane, const char* table, std::int64_t from);
  Outcome<void> make_hour_in(std::int64_t lane, Minute now, std::set<std::int64_t>& open);
  Outcome<void> merge(const char* table, std::int64_t key, const model::DeviceInterval& load, std::int64_t measured);
  Outcome<void> merge_tenants(const char* table, std::int64_t key, std::vector<NumberedTenant> tenants,
                              std::int64_t measured);
  Outcome<void> make_hour_of(std::int64_t lane, std::int64_t hour);
  Outcome<std::uint64_t> erase(const char* table, Removal why, std::int64_t lane, std::int64_t from, std::int64_t to);
  Outcome<void> put(const char* table, std::int64_t key, const Bytes& bytes, std::int64_t measured);

  Connection& connection_;
  Account& account_;
  std::set<std::int64_t> added_to_;  // lanes
};

}  // namespace ssdpulse::history
