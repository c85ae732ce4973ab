// SPDX-License-Identifier: Apache-2.0
// LatencyBuckets, SparseBuckets: the samples between two readings of a cumulative latency histogram: as one count for
// each bucket of bpf/abi/latency_buckets.h, or sparse. Pure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/base/varints.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::model {

using LatencyBuckets = std::vector<std::uint64_t>;

/// Device times of these operations, whatever else was in flight.
LatencyBuckets device_time_buckets(const DeviceIo& io, std::initializer_list<Operation> operations);

void add(LatencyBuckets& sum, const LatencyBuckets& more);
std::uint64_t count(const LatencyBuckets& buckets);

/// What was added between two cumulative counts; nothing if a count decreased (a device was reset).
std::optional<LatencyBuckets> added(const LatencyBuckets& before, const LatencyBuckets& after);

/// Only the buckets that have samples: which one, and how many, never 0; ascending.
using SparseBuckets = std::vector<std::pair<std::uint8_t, std::uint64_t>>;

SparseBuckets sparse(const LatencyBuckets& buckets);
void add(SparseBuckets& sum, const SparseBuckets& more);
std::uint64_t count(const SparseBuckets& buckets);

/// The latencies of a stretch of time.
struct SparseHistogram {
  SparseBuckets words;
  std::uint64_t sum_ns = 0;  // exact

  bool operator==(const SparseHistogram&) const = default;
  [[nodiscard]] bool empty() const { return words.empty(); }
  [[nodiscard]] std::uint64_t count() const { return model::count(words); }
};

void add(SparseHistogram& sum, const SparseHistogram& more);

/// Takes differences of cumulative counts, and remembers whether any went backwards: then the device's counters
/// restarted, and no difference means anything.
class Difference {
 public:
  [[nodiscard]] bool good() const { return good_; }

  std::uint64_t of(std::uint64_t before, std::uint64_t after) {
    good_ = good_ && before <= after;
    return after - before;
  }
  SparseBuckets of(const LatencyBuckets& before, const LatencyBuckets& after);
  SparseHistogram of(const LatencyHistogram& before, const LatencyHistogram& after);

 private:
  bool good_ = true;
};

/// The bucket in which this share (0..1) of the samples ends. There must be samples.
std::size_t quantile_bucket(const LatencyBuckets& buckets, double share);
std::size_t quantile_bucket(const SparseBuckets& buckets, double share);

/// The upper bound of a bucket, in seconds; 0 for the bucket of differences that were not positive, 64 for the last.
double upper_bound_seconds(std::size_t bucket);

/// The buckets of a histogram as bytes, in memory and in the file: how many, and for each its distance from the
/// previous bucket, and how many samples it has. Exact both ways.
void put(util::VarintWriter& out, const SparseBuckets& buckets);

/// Buckets that are not ascending, out of range or without samples are as bad as missing bytes: see
/// VarintReader::good().
SparseBuckets take_buckets(util::VarintReader& in);

}  // namespace ssdpulse::model
