// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/device_load.h"

#include <algorithm>
#include <numeric>

namespace ssdpulse::model {
namespace {

/// Thrown when a cumulative count went backwards.
struct Restarted {};

std::uint64_t less(std::uint64_t after, std::uint64_t before) {
  if (after < before) {
    throw Restarted{};
  }
  return after - before;
}

std::uint64_t sum_of(const auto& counts) { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }

SparseHistogram between(const LatencyHistogram& before, const LatencyHistogram& after) {
  const auto words = added(before.words, after.words);
  if (!words) {
    throw Restarted{};
  }
  return sparse(*words, less(after.sum_ns, before.sum_ns));
}

OperationLoad between(const OperationIo& before, const OperationIo& after) {
  return {less(after.completions, before.completions), less(after.bytes, before.bytes),
          less(after.sequential_bytes, before.sequential_bytes), less(after.queue_full_ns, before.queue_full_ns),
          less(sum_of(after.errors), sum_of(before.errors))};
}

/// Device time where it is measured, else total.
SparseHistogram time_of(const OperationIo& before, const OperationIo& after) {
  SparseHistogram device;
  for (std::size_t during = 0; during < kDurings; ++during) {
    add(device, between(before.device_latency[during], after.device_latency[during]));
  }
  return device.empty() ? between(before.total_latency, after.total_latency) : device;
}

DeviceLoad difference(const DeviceIo& before, const DeviceIo& after) {
  DeviceLoad load;
  for (std::size_t i = 0; i < kOperations; ++i) {
    load.operations[i] = between(before.operations[i], after.operations[i]);
  }
  for (std::size_t i = 0; i < kLosses; ++i) {
    load.losses[i] = less(after.losses[i], before.losses[i]);
  }
  const auto put = [&load](Latency where, SparseHistogram histogram) {
    load.latencies[index(where)] = std::move(histogram);
  };
  const auto directions = {
      std::tuple(Operation::read, Latency::read_total, Latency::read_device_none, Latency::read_queue),
      std::tuple(Operation::write, Latency::write_total, Latency::write_device_none, Latency::write_queue)};
  for (const auto& [operation, total, device, queue] : directions) {
    const OperationIo& old = before.operation(operation);
    const OperationIo& now = after.operation(operation);
    put(total, between(old.total_latency, now.total_latency));
    put(queue, between(old.queue_latency, now.queue_latency));
    for (std::size_t during = 0; during < kDurings; ++during) {
      put(static_cast<Latency>(index(device) + during),
          between(old.device_latency[during], now.device_latency[during]));
    }
  }
  put(Latency::flush, time_of(before.operation(Operation::flush), after.operation(Operation::flush)));
  put(Latency::discard, time_of(before.operation(Operation::discard), after.operation(Operation::discard)));
  put(Latency::commit, between(before.commit_latency, after.commit_latency));
  return load;
}

std::pair<std::uint64_t, std::uint64_t> weight(const TenantLoad& tenant) {
  std::pair<std::uint64_t, std::uint64_t> sum;
  for (const AttributedTotals& totals : tenant.totals) {
    sum.first += totals.device_ns;
    sum.second += totals.bytes;
  }
  return sum;
}

void add(TotalsByOperation& sum, const TotalsByOperation& more) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += more[i];
  }
}

}  // namespace

std::uint64_t SparseHistogram::count() const {
  return std::accumulate(words.begin(), words.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& word) { return sum + word.second; });
}

LatencyBuckets SparseHistogram::dense() const {
  LatencyBuckets all(LATENCY_OVER_WORD + 1);
  for (const auto& [word, ios] : words) {
    all[std::min<std::size_t>(word, LATENCY_OVER_WORD)] += ios;
  }
  return all;
}

SparseHistogram sparse(const LatencyBuckets& words, std::uint64_t sum_ns) {
  SparseHistogram histogram{{}, sum_ns};
  for (std::size_t word = 0; word < words.size(); ++word) {
    if (words[word] > 0) {
      histogram.words.emplace_back(static_cast<std::uint8_t>(word), words[word]);
    }
  }
  return histogram;
}

void add(SparseHistogram& sum, const SparseHistogram& more) {
  sum.sum_ns += more.sum_ns;
  if (sum.empty() || more.empty()) {
    sum.words.insert(sum.words.end(), more.words.begin(), more.words.end());
    return;
  }
  decltype(sum.words) merged;
  merged.reserve(sum.words.size() + more.words.size());
  auto left = sum.words.begin();
  auto right = more.words.begin();
  while (left != sum.words.end() || right != more.words.end()) {
    if (right == more.words.end() || (left != sum.words.end() && left->first < right->first)) {
      merged.push_back(*left++);
    } else if (left == sum.words.end() || right->first < left->first) {
      merged.push_back(*right++);
    } else {
      merged.emplace_back(left->first, left->second + right->second);
      ++left;
      ++right;
    }
  }
  sum.words = std::move(merged);
}

SparseHistogram DeviceLoad::device(Operation read_or_write) const {
  const auto first = index(read_or_write == Operation::read ? Latency::read_device_none : Latency::write_device_none);
  SparseHistogram sum;
  for (std::size_t during = 0; during < kDurings; ++during) {
    add(sum, latencies[first + during]);
  }
  return sum;
}

void add(DeviceLoad& sum, const DeviceLoad& more) {
  sum.measured_ms += more.measured_ms;
  for (std::size_t i = 0; i < kOperations; ++i) {
    OperationLoad& to = sum.operations[i];
    const OperationLoad& from = more.operations[i];
    to.ios += from.ios;
    to.bytes += from.bytes;
    to.sequential_bytes += from.sequential_bytes;
    to.queue_full_ns += from.queue_full_ns;
    to.errors += from.errors;
  }
  for (std::size_t i = 0; i < kLosses; ++i) {
    sum.losses[i] += more.losses[i];
  }
  for (std::size_t i = 0; i < kLatencies; ++i) {
    add(sum.latencies[i], more.latencies[i]);
  }
}

std::optional<DeviceLoad> load_between(const DeviceIo& before, const DeviceIo& after,
                                       std::chrono::milliseconds measured) {
  try {
    DeviceLoad load = difference(before, after);
    load.measured_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(measured.count(), 0));
    return load;
  } catch (const Restarted&) {
    return std::nullopt;
  }
}

void add(std::vector<TenantLoad>& sum, const std::vector<TenantLoad>& more) {
  for (const TenantLoad& one : more) {
    const auto known =
        std::find_if(sum.begin(), sum.end(), [&](const TenantLoad& tenant) { return tenant.name == one.name; });
    if (known == sum.end()) {
      sum.push_back(one);
    } else {
      add(known->totals, one.totals);
    }
  }
}

std::vector<TenantLoad> heaviest(std::vector<TenantLoad> tenants, std::size_t most) {
  TenantLoad other{std::string(kOtherTenants)};
  const auto rest = std::stable_partition(tenants.begin(), tenants.end(),
                                          [](const TenantLoad& tenant) { return tenant.name != kOtherTenants; });
  std::stable_sort(tenants.begin(), rest,
                   [](const TenantLoad& a, const TenantLoad& b) { return weight(a) > weight(b); });
  const auto named = std::min<std::ptrdiff_t>(rest - tenants.begin(), static_cast<std::ptrdiff_t>(most));
  for (auto one = tenants.begin() + named; one != tenants.end(); ++one) {
    add(other.totals, one->totals);
  }
  tenants.erase(tenants.begin() + named, tenants.end());
  if (other != TenantLoad{std::string(kOtherTenants)}) {
    tenants.push_back(std::move(other));
  }
  return tenants;
}

}  // namespace ssdpulse::model
