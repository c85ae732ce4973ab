// SPDX-License-Identifier: Apache-2.0
// DeviceRows: what devices did, by minute and by hour, as rows. Adding is exact: whatever is put in is found in the sum
// of any window, word for word, also what comes late or twice.
//
// An hour's row is made once the hour is over, and is the sum of its minutes from then on: what comes later is added to
// both. Minutes can then go. For one thread, within a transaction of the caller's.
#pragma once

#include <cstdint>

#include "daemon/history/account.h"
#include "daemon/history/load_codec.h"
#include "daemon/history/rows.h"
#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

class DeviceRows {
 public:
  /// Both must live as long.
  DeviceRows(Connection& connection, Account& account) : connection_(connection), account_(account) {}

  Outcome<void> add(const DeviceMinute& row);

  /// Makes the rows of one hour that is over, the oldest that has none yet; false: there is none.
  Outcome<bool> make_hour(Minute now);

  /// Removes the minutes of the oldest hour that has them, if it lies before `end` and its row is made. How many rows.
  Outcome<std::uint64_t> thin_hour(std::int64_t end);

  /// Removes hours that ended before `end`, about a thousand at a time.
  Outcome<std::uint64_t> forget_hours(std::int64_t end);

  /// Removes the tenants of about a day of one device, the oldest, minutes before hours.
  Outcome<std::uint64_t> forget_tenants();

  /// Names of devices that have no row any more, and of tenants that have none since then: numbers are given again.
  Outcome<void> forget_names(std::int64_t last_kept);

  /// The oldest there are.
  Outcome<std::optional<std::int64_t>> first(const char* table, std::int64_t from = 0);

 private:
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
