// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/device_load.h"

#include <algorithm>
#include <numeric>

namespace ssdpulse::model {
namespace {

std::uint64_t sum_of(const auto& counts) { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }

OperationLoad between(const OperationIo& before, const OperationIo& after, Difference& difference) {
  return {difference.of(before.completions, after.completions), difference.of(before.bytes, after.bytes),
          difference.of(before.sequential_bytes, after.sequential_bytes),
          difference.of(before.queue_full_ns, after.queue_full_ns),
          difference.of(sum_of(before.errors), sum_of(after.errors))};
}

/// Device time where it is measured, else total.
SparseHistogram time_of(const OperationIo& before, const OperationIo& after, Difference& difference) {
  SparseHistogram device;
  for (std::size_t during = 0; during < kDurings; ++during) {
    add(device, difference.of(before.device_latency[during], after.device_latency[during]));
  }
  return device.empty() ? difference.of(before.total_latency, after.total_latency) : device;
}

DeviceLoad load_of(const DeviceIo& before, const DeviceIo& after, Difference& difference) {
  DeviceLoad load;
  for (std::size_t i = 0; i < kOperations; ++i) {
    load.operations[i] = between(before.operations[i], after.operations[i], difference);
  }
  for (std::size_t i = 0; i < kLosses; ++i) {
    load.losses[i] = difference.of(before.losses[i], after.losses[i]);
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
    put(total, difference.of(old.total_latency, now.total_latency));
    put(queue, difference.of(old.queue_latency, now.queue_latency));
    for (std::size_t during = 0; during < kDurings; ++during) {
      put(static_cast<Latency>(index(device) + during),
          difference.of(old.device_latency[during], now.device_latency[during]));
    }
  }
  put(Latency::flush, time_of(before.operation(Operation::flush), after.operation(Operation::flush), difference));
  put(Latency::discard, time_of(before.operation(Operation::discard), after.operation(Operation::discard), difference));
  put(Latency::commit, difference.of(before.commit_latency, after.commit_latency));
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
  Difference difference;
  DeviceLoad load = load_of(before, after, difference);
  load.measured_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(measured.count(), 0));
  return difference.good() ? std::optional(std::move(load)) : std::nullopt;
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
