// SPDX-License-Identifier: Apache-2.0
// Account: what the history file knows of the clocks, and how far its upkeep has come. One row; see schema/schema.sql.
#pragma once

#include <cstdint>

#include "daemon/history/row_ledger.h"
#include "daemon/history/rows.h"
#include "daemon/history/sqlite.h"
#include "daemon/model/past.h"

namespace ssdpulse::history {

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

/// Nothing: this version has never written a row.
Outcome<std::optional<Account>> load_account(Connection& connection);
Outcome<void> save_account(Connection& connection, const Account& account);

/// Minutes since the epoch.
inline std::int64_t number_of(Minute minute) { return minute.time_since_epoch().count(); }
inline Minute minute_of(std::int64_t number) { return Minute(std::chrono::minutes(number)); }

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

}  // namespace ssdpulse::history
