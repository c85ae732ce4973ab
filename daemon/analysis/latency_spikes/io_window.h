// SPDX-License-Identifier: Apache-2.0
// IoWindow: what a device did between two ticks, as the difference of two cumulative readings. Pure: monotonic times
// come from the caller, and a window is as long as the time between them.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/model/clock.h"
#include "daemon/model/latency_buckets.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/spikes.h"

namespace ssdpulse::analysis {

using model::add;
using model::count;
using model::quantile_bucket;
using model::SparseBuckets;
using model::SteadyTime;
using model::upper_bound_seconds;

inline double seconds_between(SteadyTime begin, SteadyTime end) {
  return std::chrono::duration<double>(end - begin).count();
}
inline SteadyTime middle(SteadyTime begin, SteadyTime end) { return begin + (end - begin) / 2; }
inline std::chrono::nanoseconds nanoseconds_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

/// Reads, writes, flushes or commits. Commits only have total latencies.
struct OperationWindow {
  SparseBuckets total;
  double total_seconds = 0;  // total latencies added up
  SparseBuckets queue;
  std::array<SparseBuckets, model::kDurings> device;
  std::uint64_t ios = 0;  // completed
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;     // those that say something about the device
  std::uint64_t failovers = 0;  // to another path
  std::uint64_t requeues = 0;   // by the driver: retries, or a device that is busy
  double busy_seconds = 0;      // device times added up; divided by the window's length, the mean depth
  double queue_full_seconds = 0;
  std::int64_t in_flight_before = 0;
  std::int64_t in_flight_after = 0;

  [[nodiscard]] std::int64_t least_in_flight() const {
    return std::max<std::int64_t>(0, std::min(in_flight_before, in_flight_after));
  }
  /// Something was in flight all the time, apart from what leaked, and nothing completed.
  [[nodiscard]] bool stalled(std::int64_t leaked = 0) const { return ios == 0 && least_in_flight() > leaked; }
};

/// Discards or flushes: the amount of interference.
struct InterferenceWindow {
  std::uint64_t issues = 0;
  std::int64_t in_flight = 0;  // at the end
  double busy_seconds = 0;     // device times of those that ended, added up
};

struct IoWindow {
  SteadyTime begin;
  SteadyTime end;
  model::ByOperation<OperationWindow, model::kSpikeOperations> operations;
  InterferenceWindow discards;
  InterferenceWindow flushes;
  std::uint64_t missed = 0;  // completions of earlier I/Os that, as it turned out, were never seen

  [[nodiscard]] const OperationWindow& operation(model::Operation which) const { return operations[which]; }
  [[nodiscard]] double seconds() const { return seconds_between(begin, end); }
  // Of reads and writes:
  [[nodiscard]] std::uint64_t ios() const { return operations[0].ios + operations[1].ios; }
  [[nodiscard]] std::uint64_t bytes() const { return operations[0].bytes + operations[1].bytes; }
};

/// Nothing if counting restarted in between, or no time passed.
std::optional<IoWindow> window_between(const model::DeviceIo& before, SteadyTime begin, const model::DeviceIo& after,
                                       SteadyTime end);

/// The first word for latencies beyond `limit` seconds: the one above the word that holds `limit`.
std::size_t first_word_above(double limit);
std::uint64_t count_above(const SparseBuckets& words, double limit);
/// The total time of the I/Os beyond the limit, using the upper bounds of their words.
double seconds_above(const SparseBuckets& words, double limit);
/// The total time beyond `usual` of the I/Os beyond the limit, using the middles of their words.
double excess_above(const SparseBuckets& words, double limit, double usual);
/// The slowest latency: the upper bound of its word; 0 if there is none.
double slowest_seconds(const SparseBuckets& words);
/// For latencies beyond the last bound, the sum is more informative: it gives at least their mean.
double slowest_seconds(const OperationWindow& window);

}  // namespace ssdpulse::analysis
