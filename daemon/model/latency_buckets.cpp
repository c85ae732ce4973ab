// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/latency_buckets.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "bpf/abi/latency_buckets.h"

namespace ssdpulse::model {

LatencyBuckets device_time_buckets(const DeviceIo& io, std::initializer_list<Operation> operations) {
  LatencyBuckets buckets;
  for (const Operation operation : operations) {
    for (const LatencyHistogram& histogram : io.operation(operation).device_latency) {
      add(buckets, histogram.words);
    }
  }
  return buckets;
}

void add(LatencyBuckets& sum, const LatencyBuckets& more) {
  sum.resize(std::max(sum.size(), more.size()));
  std::transform(more.begin(), more.end(), sum.begin(), sum.begin(), std::plus<>());
}

std::uint64_t count(const LatencyBuckets& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0});
}

std::optional<LatencyBuckets> added(const LatencyBuckets& before, const LatencyBuckets& after) {
  if (before.size() > after.size()) {
    return std::nullopt;
  }
  LatencyBuckets difference = after;
  for (std::size_t bucket = 0; bucket < before.size(); ++bucket) {
    if (before[bucket] > after[bucket]) {
      return std::nullopt;
    }
    difference[bucket] -= before[bucket];
  }
  return difference;
}

std::size_t quantile_bucket(const LatencyBuckets& buckets, double share) {
  // 0.07 of 100 samples is the 7th, but as a product of doubles it is a little more than 7. Subtracting two units in
  // the last place, the most by which a share and a product can be rounded up, keeps it from becoming the 8th.
  constexpr double kRounding = 1 - 2 * std::numeric_limits<double>::epsilon();
  auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count(buckets)) * kRounding));
  std::size_t bucket = 0;
  while (bucket + 1 < buckets.size() && buckets[bucket] < rank) {
    rank -= buckets[bucket];
    ++bucket;
  }
  return bucket;
}

double upper_bound_seconds(std::size_t bucket) {
  if (bucket == LATENCY_ZERO_WORD) {
    return 0;
  }
  const int native = static_cast<int>(std::min<std::size_t>(bucket, LATENCY_OVER_WORD - 1)) -
                     LATENCY_FIRST_NATIVE_WORD + LATENCY_FIRST_NATIVE_INDEX;
  return std::exp2(native / 8.0);
}

}  // namespace ssdpulse::model
