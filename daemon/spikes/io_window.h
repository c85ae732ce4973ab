// SPDX-License-Identifier: Apache-2.0
// IoWindow: what a device did between two ticks, and when that was by the monotonic clock. UsualLoad: what a device
// does when nothing is wrong, learned from windows. Times are in seconds unless the name says otherwise. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "daemon/model/clock.h"
#include "daemon/model/device_interval.h"

namespace ssdpulse::spikes {

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

/// The first bucket for latencies beyond `limit` seconds: the one above the bucket that holds `limit`.
std::size_t first_bucket_above(double limit);
std::uint64_t count_above(const SparseBuckets& buckets, double limit);
/// The total time of the I/Os beyond the limit, using the upper bounds of their buckets.
double seconds_above(const SparseBuckets& buckets, double limit);
/// The total time beyond `usual` of the I/Os beyond the limit, using the middles of their buckets.
double excess_above(const SparseBuckets& buckets, double limit, double usual);
/// The slowest latency: the upper bound of its bucket; 0 if there is none.
double slowest_seconds(const SparseBuckets& buckets);
/// For latencies beyond the last bound, the sum is more informative: it gives at least their mean.
double slowest_seconds(const model::SparseHistogram& total);

/// Of discards, or flushes.
struct UsualInterference {
  double per_second = 0;
  double depth = 0;  // mean number at the device
};

/// Of one operation.
struct UsualOperation {
  double depth = 0;             // mean number at the device
  double queue_full_share = 0;  // of the time
  double ios_per_second = 0;
  double bytes_per_second = 0;
};

/// Averages over the last minutes of windows with I/O in which nothing was slow; the caller makes sure of that.
class UsualLoad {
 public:
  static constexpr double kSeconds = 120;  // time constant

  void learn(const IoWindow& window);

  [[nodiscard]] const UsualOperation& operation(model::Operation which) const { return operations_[which]; }
  [[nodiscard]] double ios_per_second() const { return ios_; }
  [[nodiscard]] double bytes_per_second() const { return bytes_; }
  [[nodiscard]] const UsualInterference& discards() const { return discards_; }
  [[nodiscard]] const UsualInterference& flushes() const { return flushes_; }

 private:
  double weight_ = 0;
  model::ByOperation<UsualOperation, model::kSpikeOperations> operations_;
  double ios_ = 0;
  double bytes_ = 0;
  UsualInterference discards_;
  UsualInterference flushes_;
};

}  // namespace ssdpulse::spikes
