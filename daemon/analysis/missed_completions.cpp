// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/missed_completions.h"

#include <numeric>
#include <utility>

namespace ssdpulse::analysis {
namespace {

using model::index;
using model::RequeueReason;

std::int64_t in_flight(const model::DeviceIo& io, std::span<const model::Operation> operations) {
  return std::accumulate(operations.begin(), operations.end(), std::int64_t{0},
                         [&](std::int64_t sum, model::Operation one) { return sum + io.operation(one).in_flight; });
}

}  // namespace

std::optional<model::KernelInFlight> plausible(const model::KernelInFlight& kernel, const model::DeviceIo& ours,
                                               const std::optional<KernelLead>& lead) {
  const KernelLead shown = lead.value_or(KernelLead{});
  const auto contradicted = [&](std::int64_t has, std::int64_t we_have, std::int64_t ended_more) {
    return has == 0 && we_have > 0 && we_have > ended_more;
  };
  if (contradicted(kernel.reads, in_flight(ours, kReading), shown.reads) ||
      contradicted(kernel.writes, in_flight(ours, kWriting), shown.writes)) {
    return std::nullopt;
  }
  return kernel;
}

MissedCompletions::Counts MissedCompletions::counts(const model::DeviceIo& io,
                                                    std::span<const model::Operation> operations) {
  Counts counts;
  for (const model::Operation operation : operations) {
    const model::OperationIo& one = io.operation(operation);
    counts.in_flight += one.in_flight;
    counts.issues += one.issues + one.requeues[index(RequeueReason::driver)];
    counts.ends += one.completions + one.requeues[index(RequeueReason::failover)];
  }
  return counts;
}

bool MissedCompletions::stands_still(const model::DeviceIo& ours) const {
  const auto stands_still = [](const Direction& direction, const Counts& now) {
    return now.in_flight > 0 && now.ends == direction.last.ends;
  };
  return stands_still(reads_, counts(ours, kReading)) || stands_still(writes_, counts(ours, kWriting));
}

MissedCompletions::Ended MissedCompletions::observe(const model::DeviceIo& ours,
                                                    const std::optional<model::KernelInFlight>& kernel) {
  return {reads_.observe(counts(ours, kReading), kernel ? std::optional(kernel->reads) : std::nullopt),
          writes_.observe(counts(ours, kWriting), kernel ? std::optional(kernel->writes) : std::nullopt)};
}

bool MissedCompletions::Direction::observe(const Counts& ours, std::optional<std::int64_t> kernel) {
  last = ours;
  const std::optional<Counts> gone_before = std::exchange(gone, std::nullopt);
  if (kernel != 0 || ours.in_flight <= 0) {
    return false;
  }
  if (gone_before == ours) {
    return true;
  }
  gone = ours;
  return false;
}

}  // namespace ssdpulse::analysis
