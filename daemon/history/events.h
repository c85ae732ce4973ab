// SPDX-License-Identifier: Apache-2.0
// What happened, as rows: bursts, the seconds around spikes, settings, marks. Each kind has its own bound.
// For one thread, within a transaction of the caller's.
#pragma once

#include <cstdint>

#include "daemon/history/rows.h"
#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

inline constexpr std::uint64_t kMostSpikeSecondsBytes = std::uint64_t{64} << 20U;
/// How the evidence of a spike begins, followed by the seconds waited in it beyond the usual.
inline constexpr std::string_view kExcess = "excess_seconds=";

inline constexpr std::int64_t kMostBursts = 100'000;  // rows of 60 bytes, like the next three
inline constexpr std::int64_t kMostWaits = 20'000;
inline constexpr std::int64_t kMostSettings = 20'000;
inline constexpr std::int64_t kMostMarks = 10'000;

Outcome<void> insert(Connection& connection, const model::PastBurst& burst);
Outcome<void> insert(Connection& connection, const model::PastWait& wait);
/// Overlapping seconds of the same device become one row; the least bad go first if there are more than `most_bytes`.
Outcome<void> insert(Connection& connection, const SpikeSeconds& seconds, std::uint64_t most_bytes);
/// Adds a row only if the last one has another value.
Outcome<void> insert(Connection& connection, const Setting& setting, std::chrono::system_clock::time_point at);
/// At its own millisecond, or the next one that no other mark has.
Outcome<void> insert(Connection& connection, const model::Mark& mark);

/// Removes what is older, and what exceeds the bounds. The last value of a setting stays, however old, unless it is
/// empty or there are too many.
Outcome<void> forget_events(Connection& connection, Minute last_kept);

}  // namespace ssdpulse::history
