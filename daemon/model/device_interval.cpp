// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/device_interval.h"

#include <numeric>
#include <utility>

#include "daemon/model/stage.h"

namespace ssdpulse::model {
namespace {

std::uint64_t sum_of(const auto& counts) { return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}); }

/// A full file system, an unsupported command and a request not to wait say nothing about the device.
std::uint64_t device_errors(const OperationIo& io) {
  return sum_of(io.errors) - io.errors[index(IoError::again)] - io.errors[index(IoError::nospace)] -
         io.errors[index(IoError::unsupported)];
}

OperationInterval between(const OperationIo& before, const OperationIo& after, Difference& difference) {
  const auto requeues = [&](RequeueReason reason) {
    return difference.of(before.requeues[index(reason)], after.requeues[index(reason)]);
  };
  return {.ios = difference.of(before.completions, after.completions),
          .bytes = difference.of(before.bytes, after.bytes),
          .sequential_bytes = difference.of(before.sequential_bytes, after.sequential_bytes),
          .queue_full_ns = difference.of(before.queue_full_ns, after.queue_full_ns),
          .errors = difference.of(sum_of(before.errors), sum_of(after.errors)),
          .device_errors = difference.of(device_errors(before), device_errors(after)),
          .issues = difference.of(before.issues, after.issues),
          .failovers = requeues(RequeueReason::failover),
          .requeues = requeues(RequeueReason::driver),
          .in_flight_before = before.in_flight,
          .in_flight_after = after.in_flight};
}

void take_latencies(OperationInterval& interval, const OperationIo& before, const OperationIo& after,
                    Difference& difference) {
  interval.total = difference.of(before.total_latency, after.total_latency);
  interval.queue = difference.of(before.queue_latency, after.queue_latency);
  for (std::size_t during = 0; during < kDurings; ++during) {
    interval.device[during] = difference.of(before.device_latency[during], after.device_latency[during]);
  }
}

void add(OperationInterval& sum, const OperationInterval& more) {
  sum.ios += more.ios;
  sum.bytes += more.bytes;
  sum.sequential_bytes += more.sequential_bytes;
  sum.queue_full_ns += more.queue_full_ns;
  sum.errors += more.errors;
  add(sum.total, more.total);
  add(sum.queue, more.queue);
  for (std::size_t during = 0; during < kDurings; ++during) {
    add(sum.device[during], more.device[during]);
  }
}

/// Where a histogram is: of which operation, and which of its histograms.
template <typename Interval>
auto& latency_in(Interval& interval, Latency wanted) {
  const auto of = [&](Operation operation) -> auto& { return interval.operations[index(operation)]; };
  const auto during = [&](Latency none) { return index(wanted) - index(none); };
  switch (wanted) {
    case Latency::read_total:
      return of(Operation::read).total;
    case Latency::write_total:
      return of(Operation::write).total;
    case Latency::read_device_none:
    case Latency::read_device_discard:
    case Latency::read_device_flush:
    case Latency::read_device_both:
      return of(Operation::read).device[during(Latency::read_device_none)];
    case Latency::write_device_none:
    case Latency::write_device_discard:
    case Latency::write_device_flush:
    case Latency::write_device_both:
      return of(Operation::write).device[during(Latency::write_device_none)];
    case Latency::read_queue:
      return of(Operation::read).queue;
    case Latency::write_queue:
      return of(Operation::write).queue;
    case Latency::flush:
      return of(Operation::flush).device[0];
    case Latency::discard:
      return of(Operation::discard).device[0];
    case Latency::commit:
      break;
  }
  return of(Operation::commit).total;
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

SparseHistogram OperationInterval::in_device() const {
  SparseHistogram sum;
  for (const SparseHistogram& histogram : device) {
    add(sum, histogram);
  }
  return sum;
}

std::uint64_t OperationInterval::device_ns() const {
  return std::accumulate(device.begin(), device.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const SparseHistogram& histogram) { return sum + histogram.sum_ns; });
}

const SparseHistogram& DeviceInterval::latency(Latency wanted) const { return latency_in(*this, wanted); }
SparseHistogram& DeviceInterval::latency(Latency wanted) { return latency_in(*this, wanted); }

void add(DeviceInterval& sum, const DeviceInterval& more) {
  sum.measured_ms += more.measured_ms;
  for (std::size_t i = 0; i < sum.operations.size(); ++i) {
    add(sum.operations[i], more.operations[i]);
  }
  for (std::size_t i = 0; i < kLosses; ++i) {
    sum.losses[i] += more.losses[i];
  }
}

std::optional<DeviceInterval> between(const DeviceIo& before, const DeviceIo& after,
                                      std::chrono::nanoseconds measured) {
  Difference difference;
  DeviceInterval interval;
  const auto ms = std::chrono::round<std::chrono::milliseconds>(measured).count();
  interval.measured_ms = static_cast<std::uint64_t>(std::max<std::int64_t>(ms, 0));
  for (std::size_t i = 0; i < kOperations; ++i) {
    interval.operations[i] = between(before.operations[i], after.operations[i], difference);
  }
  for (const Operation operation : {Operation::read, Operation::write, Operation::flush, Operation::discard}) {
    take_latencies(interval.operations[index(operation)], before.operation(operation), after.operation(operation),
                   difference);
  }
  OperationInterval& commits = interval.operations[index(Operation::commit)];
  commits.total = difference.of(before.commit_latency, after.commit_latency);
  commits.ios = commits.total.count();
  for (std::size_t i = 0; i < kLosses; ++i) {
    interval.losses[i] = difference.of(before.losses[i], after.losses[i]);
  }
  return difference.good() ? std::optional(std::move(interval)) : std::nullopt;
}

void Intervals::set_intervals(Tick& tick) {
  const auto before = std::exchange(before_, {});
  const auto since = std::exchange(at_, tick.at);
  for (DeviceTick& device : tick.devices) {
    const auto& io = device.block.io;
    device.interval.reset();
    if (!io) {
      continue;
    }
    before_.emplace(device.block.device->name, io);
    const auto was = before.find(device.block.device->name);
    if (was == before.end() || was->second->since != io->since || tick.at <= since) {
      continue;
    }
    if (auto interval = between(*was->second, *io, tick.at - since)) {
      device.interval = std::make_shared<const DeviceInterval>(std::move(*interval));
    }
  }
}

DeviceInterval kept(DeviceInterval interval) {
  for (OperationInterval& operation : interval.operations) {
    operation.device_errors = operation.issues = operation.failovers = operation.requeues = 0;
    operation.in_flight_before = operation.in_flight_after = 0;
  }
  for (const Operation operation : {Operation::flush, Operation::discard}) {
    OperationInterval& kept = interval.operations[index(operation)];
    SparseHistogram device = kept.in_device();
    kept.device = {device.empty() ? std::move(kept.total) : std::move(device)};
    kept.total = {};
    kept.queue = {};
  }
  interval.operations[index(Operation::commit)].ios = 0;  // as many as its histogram has
  return interval;
}

void add(std::vector<TenantLoad>& sum, const std::vector<TenantLoad>& more) {
  for (const TenantLoad& tenant : more) {
    const auto known =
        std::find_if(sum.begin(), sum.end(), [&](const TenantLoad& other) { return other.name == tenant.name; });
    if (known == sum.end()) {
      sum.push_back(tenant);
    } else {
      add(known->totals, tenant.totals);
    }
  }
}

std::vector<TenantLoad> heaviest(std::vector<TenantLoad> tenants, std::size_t max_names) {
  TenantLoad other{std::string(kOtherTenants)};
  const auto rest = std::stable_partition(tenants.begin(), tenants.end(),
                                          [](const TenantLoad& tenant) { return tenant.name != kOtherTenants; });
  std::stable_sort(tenants.begin(), rest,
                   [](const TenantLoad& a, const TenantLoad& b) { return weight(a) > weight(b); });
  const auto named = std::min<std::ptrdiff_t>(rest - tenants.begin(), static_cast<std::ptrdiff_t>(max_names));
  for (auto tenant = tenants.begin() + named; tenant != tenants.end(); ++tenant) {
    add(other.totals, tenant->totals);
  }
  tenants.erase(tenants.begin() + named, tenants.end());
  if (other != TenantLoad{std::string(kOtherTenants)}) {
    tenants.push_back(std::move(other));
  }
  return tenants;
}

}  // namespace ssdpulse::model
