// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/latency_buckets.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "bpf/abi/latency_buckets.h"

namespace ssdpulse::model {
namespace {

/// Which of so many samples, from the fastest, is the one in which this share ends.
std::uint64_t rank_of(double share, std::uint64_t samples) {
  // 0.07 of 100 samples is the 7th, but as a product of doubles it is a little more than 7. Subtracting two units in
  // the last place, the most by which a share and a product can be rounded up, keeps it from becoming the 8th.
  constexpr double kRounding = 1 - 2 * std::numeric_limits<double>::epsilon();
  return static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(samples) * kRounding));
}

}  // namespace

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
  Difference difference;
  LatencyBuckets more = after;
  for (std::size_t bucket = 0; bucket < before.size(); ++bucket) {
    more[bucket] = difference.of(before[bucket], after[bucket]);
  }
  return difference.good() ? std::optional(std::move(more)) : std::nullopt;
}

SparseBuckets sparse(const LatencyBuckets& buckets) { return Difference().of({}, buckets); }

void add(SparseBuckets& sum, const SparseBuckets& more) {
  if (sum.empty() || more.empty()) {
    sum.insert(sum.end(), more.begin(), more.end());
    return;
  }
  SparseBuckets merged;
  merged.reserve(sum.size() + more.size());
  auto left = sum.begin();
  auto right = more.begin();
  while (left != sum.end() || right != more.end()) {
    if (right == more.end() || (left != sum.end() && left->first < right->first)) {
      merged.push_back(*left++);
    } else if (left == sum.end() || right->first < left->first) {
      merged.push_back(*right++);
    } else {
      merged.emplace_back(left->first, left->second + right->second);
      ++left;
      ++right;
    }
  }
  sum = std::move(merged);
}

std::uint64_t count(const SparseBuckets& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& bucket) { return sum + bucket.second; });
}

void add(SparseHistogram& sum, const SparseHistogram& more) {
  add(sum.words, more.words);
  sum.sum_ns += more.sum_ns;
}

SparseBuckets Difference::of(const LatencyBuckets& before, const LatencyBuckets& after) {
  if (&before == &after) {  // the reading of an idle device is the same object
    return {};
  }
  const auto was = [&before](std::size_t bucket) { return bucket < before.size() ? before[bucket] : 0; };
  std::size_t changed = 0;
  for (std::size_t bucket = 0; bucket < after.size(); ++bucket) {
    changed += after[bucket] != was(bucket) ? 1U : 0U;
  }
  SparseBuckets buckets;
  buckets.reserve(changed);
  good_ = good_ && before.size() <= after.size();
  for (std::size_t bucket = 0; bucket < after.size(); ++bucket) {
    if (const std::uint64_t ios = of(was(bucket), after[bucket]); ios > 0) {
      buckets.emplace_back(static_cast<std::uint8_t>(bucket), ios);
    }
  }
  return buckets;
}

SparseHistogram Difference::of(const LatencyHistogram& before, const LatencyHistogram& after) {
  return {of(before.words, after.words), of(before.sum_ns, after.sum_ns)};
}

std::size_t quantile_bucket(const LatencyBuckets& buckets, double share) {
  std::uint64_t rank = rank_of(share, count(buckets));
  std::size_t bucket = 0;
  while (bucket + 1 < buckets.size() && buckets[bucket] < rank) {
    rank -= buckets[bucket];
    ++bucket;
  }
  return bucket;
}

std::size_t quantile_bucket(const SparseBuckets& buckets, double share) {
  std::uint64_t rank = rank_of(share, count(buckets));
  auto at = buckets.begin();
  while (at + 1 != buckets.end() && at->second < rank) {
    rank -= at->second;
    ++at;
  }
  return at->first;
}

double upper_bound_seconds(std::size_t bucket) {
  if (bucket == LATENCY_ZERO_WORD) {
    return 0;
  }
  const int native = static_cast<int>(std::min<std::size_t>(bucket, LATENCY_OVER_WORD - 1)) -
                     LATENCY_FIRST_NATIVE_WORD + LATENCY_FIRST_NATIVE_INDEX;
  return std::exp2(native / 8.0);
}

void put(util::VarintWriter& out, const SparseBuckets& buckets) {
  out.put(buckets.size());
  std::uint64_t last = 0;
  for (const auto& [bucket, ios] : buckets) {
    out.put(bucket - last).put(ios);
    last = bucket;
  }
}

SparseBuckets take_buckets(util::VarintReader& in) {
  SparseBuckets buckets;
  const std::uint64_t size = in.take(LATENCY_OVER_WORD + 1);
  buckets.reserve(size);
  std::uint64_t bucket = 0;
  for (std::uint64_t i = 0; i < size && in.good(); ++i) {
    const std::uint64_t step = in.take(LATENCY_OVER_WORD);
    bucket += step;
    const std::uint64_t ios = in.take();
    in.expect(bucket <= LATENCY_OVER_WORD && ios > 0 && (i == 0 || step > 0));
    if (in.good()) {
      buckets.emplace_back(static_cast<std::uint8_t>(bucket), ios);
    }
  }
  return buckets;
}

}  // namespace ssdpulse::model
