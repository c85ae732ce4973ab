// SPDX-License-Identifier: Apache-2.0
// Rows of what happened: bursts of discards, waits, the seconds around spikes, settings, marks. Each kind has its share
// of history.size. `measured`: minutes, see file_account.h. For one thread, within a transaction of the caller's.
#pragma once

#include <cstdint>

#include "daemon/history/file_account.h"
#include "daemon/history/sqlite.h"
#include "daemon/model/history_rows.h"

namespace ssdpulse::history {

// Rows of about 60 bytes each at the default history.size; another size scales them.
inline constexpr std::int64_t kMaxBursts = 100'000;
inline constexpr std::int64_t kMaxWaits = 20'000;
inline constexpr std::int64_t kMaxSettings = 20'000;
inline constexpr std::int64_t kMaxMarks = 10'000;

Outcome<void> insert(Connection& connection, const model::PastBurst& burst, std::int64_t measured, RowLedger& ledger);
Outcome<void> insert(Connection& connection, const model::PastWait& wait, std::int64_t measured, RowLedger& ledger);
/// Removes the least harmful beyond `max_bytes`.
Outcome<void> insert(Connection& connection, const model::SpikeSeconds& seconds, std::int64_t measured,
                     std::uint64_t max_bytes, RowLedger& ledger);
/// Adds a row only if the last one has another value.
Outcome<void> insert(Connection& connection, const model::Setting& setting, std::chrono::system_clock::time_point at,
                     std::int64_t measured, RowLedger& ledger);
/// Returns the time under which it is kept: a millisecond later where another mark has the same time, and the first
/// one's if the mark was sent before.
Outcome<model::WallTime> insert(Connection& connection, const model::Mark& mark, std::int64_t measured,
                                RowLedger& ledger);

/// The age of the oldest event, without settings and marks.
Outcome<std::optional<std::int64_t>> oldest_event(Connection& connection);

/// Removes events that are older, about a thousand of each kind at a time.
Outcome<void> forget_events(Connection& connection, std::int64_t end, Removal why, RowLedger& ledger);
/// Likewise, but the last value of a setting stays, however old, unless it is empty. Goes through all settings.
Outcome<void> forget_settings(Connection& connection, std::int64_t end, Removal why, RowLedger& ledger);

/// Removes the oldest of each kind beyond its share of a file of so many bytes. Of settings, former values go first,
/// then those of devices that have been gone longest; some more than needed, because this goes through all settings.
Outcome<void> enforce_shares(Connection& connection, std::uint64_t size_limit, std::int64_t measured,
                             RowLedger& ledger);

}  // namespace ssdpulse::history
