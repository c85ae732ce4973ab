// SPDX-License-Identifier: Apache-2.0
// DeviceRows: what devices did, by minute and by hour, as rows. Adding is exact: everything added is found in the sum
// of any window, word for word, even if it comes late or twice.
//
// An hour's row is made once the hour is over, and from then on is the sum of its minutes: later additions go to both.
// After that, minutes can be removed. For one thread, within a transaction of the caller's.
#pragma once

#include <cstdint>

#include "daemon/history/account.h"
#include "daemon/history/load_codec.h"
#include "daemon/history/rows.h"
#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

class DeviceRows {
 public:
  /// Both must outlive this object.
  DeviceRows(Connection& connection, Account& account) : connection_(connection), account_(account) {}

  Outcome<void> add(const DeviceMinute& row);

  /// Makes the rows of the oldest finished hour that has none yet; false: there is no such hour.
  Outcome<bool> make_hour(Minute now);

  /// Removes the minutes of the oldest hour that has any, if it is before `end` and its row is made. Returns how many.
  Outcome<std::uint64_t> thin_hour(std::int64_t end);

  /// Removes hours that ended before `end`, about a thousand at a time.
  Outcome<std::uint64_t> forget_hours(std::int64_t end);

  /// Removes the oldest tenant rows of all devices: about an hour of minutes or, if there are none, a day of hours.
  Outcome<std::uint64_t> forget_tenants();

  /// Removes names of devices that have no row any more, and of tenants that have none since then: numbers are reused.
  Outcome<void> forget_names(std::int64_t last_kept);

  /// The oldest minute in a table.
  Outcome<std::optional<std::int64_t>> first(const char* table, std::int64_t from = 0);

 private:
  Outcome<void> rename(const DeviceKey& device);
  Outcome<std::int64_t> id_of(const DeviceKey& device, Minute minute);
  Outcome<std::int64_t> id_of(const std::string& tenant, Minute minute);
  Outcome<std::vector<std::int64_t>> device_ids();
  Outcome<void> merge(const char* table, std::int64_t key, const model::DeviceLoad& load);
  Outcome<void> merge_tenants(const char* table, std::int64_t key, std::vector<NumberedTenant> tenants);
  Outcome<void> make_hour_of(std::int64_t device, std::int64_t hour);
  Outcome<std::uint64_t> erase(const char* table, const char* column, std::int64_t from, std::int64_t to);

  Connection& connection_;
  Account& account_;
};

}  // namespace ssdpulse::history
