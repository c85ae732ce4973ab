// SPDX-License-Identifier: Apache-2.0
// IoWindow: what a device did between two ticks, and when that was by the monotonic clock. Pure: the times come from
// the caller, and a window is as long as the time between them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "daemon/model/clock.h"
#include "daemon/model/device_interval.h"

namespace ssdpulse::analysis {

using model::add;
using model::count;
using model::OperationInterval;
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

inline double seconds_of(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

struct IoWindow {
  SteadyTime begin;
  SteadyTime end;
  std::shared_ptr<const model::DeviceInterval> interval;

  [[nodiscard]] const OperationInterval& operation(model::Operation which) const { return interval->operation(which); }
  [[nodiscard]] double seconds() const { return seconds_between(begin, end); }
  // Of reads and writes:
  [[nodiscard]] std::uint64_t ios() const {
    return operation(model::Operation::read).ios + operation(model::Operation::write).ios;
  }
  [[nodiscard]] std::uint64_t bytes() const {
    return operation(model::Operation::read).bytes + operation(model::Operation::write).bytes;
  }
  /// Completions of earlier I/Os that, as it turned out, were never seen.
  [[nodiscard]] std::uint64_t missed() const { return interval->losses[index(model::Loss::completion_missed)]; }
};

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
double slowest_seconds(const model::SparseHistogram& total);

}  // namespace ssdpulse::analysis
