// SPDX-License-Identifier: Apache-2.0
// What happened, as rows: bursts, the seconds around spikes, settings, marks. Each kind has its share of history.size.
// For one thread, within a transaction of the caller's.
#pragma once

#include <cstdint>

#include "daemon/history/file_account.h"
#include "daemon/history/sqlite.h"
#include "daemon/model/history_rows.h"

namespace ssdpulse::history {

// Rows at the default history.size; with another one, its share. Of 60 bytes, like the next three.
inline constexpr std::int64_t kMaxBursts = 100'000;
inline constexpr std::int64_t kMaxWaits = 20'000;
inline constexpr std::int64_t kMaxSettings = 20'000;
inline constexpr std::int64_t kMaxMarks = 10'000;

// `measured`: minutes, see account.h.

Outcome<void> insert(Connection& connection, const model::PastBurst& burst, std::int64_t measured, RowLedger& ledger);
Outcome<void> insert(Connection& connection, const model::PastWait& wait, std::int64_t measured, RowLedger& ledger);
/// The least bad go first if there are more than `most_bytes`.
Outcome<void> insert(Connection& connection, const model::SpikeSeconds& seconds, std::int64_t measured,
                     std::uint64_t most_bytes, RowLedger& ledger);
/// Adds a row only if the last one has another value.
Outcome<void> insert(Connection& connection, const model::Setting& setting, std::chrono::system_clock::time_point at,
                     std::int64_t measured, RowLedger& ledger);
/// The time under which it is kept: a millisecond later where another mark has its own, and the first one's where it
/// was sent before.
Outcome<model::WallTime> insert(Connection& connection, const model::Mark& mark, std::int64_t measured,
                                RowLedger& ledger);

/// The age of the oldest event, but for settings and marks.
Outcome<std::optional<std::int64_t>> oldest_event(Connection& connection);

/// Removes events that are older, about a thousand of each kind at a time.
Outcome<void> forget_events(Connection& connection, std::int64_t end, Removal why, RowLedger& ledger);
/// Likewise, but the last value of a setting stays, however old, unless it is empty. Goes through all settings.
Outcome<void> forget_settings(Connection& connection, std::int64_t end, Removal why, RowLedger& ledger);

/// Removes the oldest of each kind beyond its share of a file of so many bytes. Of settings, former values go first,
/// then those of devices that are gone longest; as many more of both as make this rare, because it goes through all
/// settings.
Outcome<void> hold_to_shares(Connection& connection, std::uint64_t size_limit, std::int64_t measured,
                             RowLedger& ledger);

}  // namespace ssdpulse::history
