// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/io_window.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bpf/abi/latency_buckets.h"

namespace ssdpulse::spikes {

std::size_t first_bucket_above(double limit) {
  const double ns = std::clamp(limit * 1e9, 0.0, 100e9);
  return latency_word(static_cast<std::int64_t>(ns)) + std::size_t{1};
}

std::uint64_t count_above(const SparseBuckets& buckets, double limit) {
  const std::size_t first = first_bucket_above(limit);
  return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0}, [first](std::uint64_t sum, const auto& one) {
    return sum + (one.first >= first ? one.second : 0);
  });
}

double seconds_above(const SparseBuckets& buckets, double limit) {
  const std::size_t first = first_bucket_above(limit);
  double sum = 0;
  for (const auto& [bucket, ios] : buckets) {
    sum += bucket < first ? 0 : static_cast<double>(ios) * upper_bound_seconds(bucket);
  }
  return sum;
}

double excess_above(const SparseBuckets& buckets, double limit, double usual) {
  constexpr double kToMiddle = 0.957603;  // 2^(-1/16): there are eight buckets to an octave
  const std::size_t first = first_bucket_above(limit);
  double sum = 0;
  for (const auto& [bucket, ios] : buckets) {
    const double over = bucket < first ? 0 : upper_bound_seconds(bucket) * kToMiddle - usual;
    sum += static_cast<double>(ios) * std::max(0.0, over);
  }
  return sum;
}

double slowest_seconds(const SparseBuckets& buckets) {
  return buckets.empty() ? 0 : upper_bound_seconds(buckets.back().first);
}

double slowest_seconds(const model::SparseHistogram& total) {
  const double bound = slowest_seconds(total.words);
  const bool any_beyond = !total.words.empty() && total.words.back().first == LATENCY_OVER_WORD;
  const double beyond = any_beyond ? static_cast<double>(total.words.back().second) : 0;
  const double others = seconds_above(total.words, 0) - beyond * bound;
  return beyond > 0 ? std::max(bound, (seconds_of(total.sum_ns) - others) / beyond) : bound;
}

void UsualLoad::learn(const IoWindow& window) {
  if (window.ios() == 0) {
    return;
  }
  const double seconds = window.seconds();
  const double part = std::max(1 - std::exp(-seconds / kSeconds), seconds / (weight_ + seconds));
  const auto towards = [part](double& value, double now) { value += part * (now - value); };
  weight_ = std::min(weight_ + seconds, kSeconds);
  towards(ios_, static_cast<double>(window.ios()) / seconds);
  towards(bytes_, static_cast<double>(window.bytes()) / seconds);
  const auto interference = [&](UsualInterference& usual, const OperationInterval& now) {
    towards(usual.per_second, static_cast<double>(now.issues) / seconds);
    towards(usual.depth, seconds_of(now.device_ns()) / seconds);
  };
  interference(discards_, window.operation(model::Operation::discard));
  interference(flushes_, window.operation(model::Operation::flush));
  for (const model::Operation which : model::kSpikeOperations) {
    const OperationInterval& now = window.operation(which);
    UsualOperation& usual = operations_[which];
    towards(usual.depth, seconds_of(now.device_ns()) / seconds);
    towards(usual.ios_per_second, static_cast<double>(now.ios) / seconds);
    towards(usual.bytes_per_second, static_cast<double>(now.bytes) / seconds);
    towards(usual.queue_full_share, std::min(seconds_of(now.queue_full_ns) / seconds, 1.0));
  }
}

}  // namespace ssdpulse::spikes
