// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/accounting_drift.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <utility>

namespace ssdpulse::block {
namespace {

using model::index;
using model::Operation;
using model::RequeueReason;

constexpr std::uint64_t kCertain = 1000;           // I/Os, however they are spread
constexpr std::uint64_t kCertainIfRepeated = 100;  // if they are spread over several windows
constexpr std::uint64_t kRepeatedWindows = 3;

std::optional<std::uint64_t> sum(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  return a && b ? std::optional(*a + *b) : std::nullopt;
}

bool same_counts(const model::DiskStats& a, const model::DiskStats& b) {
  return a.reads == b.reads && a.writes == b.writes && a.discards == b.discards && a.flushes == b.flushes;
}

bool backwards(std::optional<std::uint64_t> from, std::optional<std::uint64_t> to) {
  return from.has_value() != to.has_value() || (from && *to < *from);
}

bool runs_backwards(const model::DiskStats& from, const model::DiskStats& to) {
  return to.reads < from.reads || to.writes < from.writes || backwards(from.discards, to.discards) ||
         backwards(from.flushes, to.flushes);
}

bool runs_backwards(const OurCounts& from, const OurCounts& to) {
  return to.reads < from.reads || to.writes < from.writes || to.discards < from.discards || to.flushes < from.flushes;
}

/// Unsigned subtraction, then a signed cast: no count is too large.
std::int64_t drift(std::uint64_t ours, std::uint64_t our_baseline, std::uint64_t kernel,
                   std::uint64_t kernel_baseline) {
  return static_cast<std::int64_t>((ours - our_baseline) - (kernel - kernel_baseline));
}

std::optional<std::int64_t> drift(std::uint64_t ours, std::uint64_t our_baseline, std::optional<std::uint64_t> kernel,
                                  std::optional<std::uint64_t> kernel_baseline) {
  if (!kernel || !kernel_baseline) {
    return std::nullopt;
  }
  return drift(ours, our_baseline, *kernel, *kernel_baseline);
}

/// Everything that any program saw of a request.
std::uint64_t seen(const model::DeviceSample& sample) {
  std::uint64_t all = sample.events.flush_data_stages + sample.events.lone_flushes;
  for (const auto& counts : {sample.events.missed, sample.events.strays}) {
    all = std::accumulate(counts.begin(), counts.end(), all);
  }
  for (const model::OperationIo& one : sample.io->operations) {
    all += one.issues + one.completions + one.unissued_completions;
  }
  return all;
}

std::uint64_t counted(const model::DiskStats& kernel) {
  return kernel.reads + kernel.writes + kernel.discards.value_or(0);
}

std::int64_t in_flight(const model::DeviceIo& io, std::span<const model::Operation> operations) {
  return std::accumulate(operations.begin(), operations.end(), std::int64_t{0},
                         [&](std::int64_t sum, model::Operation one) { return sum + io.operation(one).in_flight; });
}

struct Value {
  model::AccountingDrift drift;
  std::optional<model::Unseen> unseen;
};

}  // namespace

OurCounts compose_counts(const model::DeviceIo& io, const model::OperationEvents& unseen) {
  const auto ended = [&](std::initializer_list<Operation> operations) {
    std::uint64_t count = 0;
    for (const Operation operation : operations) {
      const model::OperationIo& one = io.operation(operation);
      // On failover the path's request ends for good; its bios return in another one.
      count += one.completions + one.unissued_completions + one.requeues[index(RequeueReason::failover)] +
               unseen.missed[index(operation)] + unseen.strays[index(operation)];
    }
    return count;
  };
  OurCounts counts;
  counts.reads = ended({Operation::read}) + unseen.lone_flushes;
  counts.writes = ended({Operation::write, Operation::write_zeroes, Operation::secure_erase, Operation::zone}) -
                  unseen.flush_data_stages;
  counts.discards = ended({Operation::discard});
  counts.flushes = ended({Operation::flush}) - unseen.lone_flushes;
  for (const Operation operation : {Operation::read, Operation::write, Operation::flush, Operation::discard,
                                    Operation::write_zeroes, Operation::secure_erase, Operation::zone}) {
    counts.in_flight += io.operation(operation).in_flight;
  }
  return counts;
}

model::DiskStats sum_of_paths(const std::vector<model::DiskStats>& paths) {
  model::DiskStats total;
  total.discards = total.discarded_sectors = total.flushes = 0;
  for (const model::DiskStats& path : paths) {
    total.reads += path.reads;
    total.read_sectors += path.read_sectors;
    total.writes += path.writes;
    total.written_sectors += path.written_sectors;
    total.in_flight += path.in_flight;
    total.busy_ms = std::max(total.busy_ms, path.busy_ms);  // at least: paths may be busy at different times
    total.discards = sum(total.discards, path.discards);
    total.discarded_sectors = sum(total.discarded_sectors, path.discarded_sectors);
    total.flushes = sum(total.flushes, path.flushes);
  }
  return total;
}

void AccountingDrift::observe(const OurCounts& before, const model::DiskStats& kernel_before,
                              const model::DiskStats& kernel_after, const OurCounts& after) {
  if (last_ && (runs_backwards(last_->kernel, kernel_before) || runs_backwards(last_->ours, before))) {
    restart();
  }
  if (runs_backwards(kernel_before, kernel_after) || runs_backwards(before, after)) {
    restart();
    return;
  }
  last_ = Sides{after, kernel_after};
  if (!lead_from_) {
    lead_from_ = Sides{before, kernel_after};  // I/Os that end in between make the lead too small, never too large
  }
  const bool at_rest = before == after && after.in_flight == 0 && same_counts(kernel_before, kernel_after) &&
                       kernel_before.in_flight == 0 && kernel_after.in_flight == 0;
  if (!at_rest) {
    return;
  }
  if (!baseline_) {
    baseline_ = last_;
  }
  lead_from_ = last_;
  value_ = since_baseline({after, kernel_after});
}

model::AccountingDrift AccountingDrift::since_baseline(const Sides& now) const {
  const auto& [ours, kernel] = *baseline_;
  model::AccountingDrift value;
  value.ios[index(Operation::read)] = drift(now.ours.reads, ours.reads, now.kernel.reads, kernel.reads);
  value.ios[index(Operation::write)] = drift(now.ours.writes, ours.writes, now.kernel.writes, kernel.writes);
  value.ios[index(Operation::discard)] = drift(now.ours.discards, ours.discards, now.kernel.discards, kernel.discards);
  value.ios[index(Operation::flush)] = drift(now.ours.flushes, ours.flushes, now.kernel.flushes, kernel.flushes);
  return value;
}

std::optional<KernelLead> AccountingDrift::lead(const OurCounts& ours, const model::DiskStats& kernel) const {
  if (!lead_from_ || runs_backwards(last_->kernel, kernel)) {
    return std::nullopt;
  }
  const auto& [our_start, kernel_start] = *lead_from_;
  const std::int64_t reads = drift(ours.reads, our_start.reads, kernel.reads, kernel_start.reads);
  const std::int64_t writes = drift(ours.writes, our_start.writes, kernel.writes, kernel_start.writes);
  const auto discards = drift(ours.discards, our_start.discards, kernel.discards, kernel_start.discards);
  return KernelLead{-reads, -writes - discards.value_or(0)};
}

void AccountingDrift::restart() {
  baseline_.reset();
  last_.reset();
  lead_from_.reset();
  value_ = {};
}

std::optional<model::KernelInFlight> plausible(const model::KernelInFlight& kernel, const model::DeviceIo& ours,
                                               const std::optional<KernelLead>& lead) {
  const auto [reads_ended, writes_ended] = lead.value_or(KernelLead{});
  const auto contradicted = [](std::int64_t kernels, std::int64_t own, std::int64_t ended) {
    return kernels == 0 && own > 0 && own > ended;
  };
  if (contradicted(kernel.reads, in_flight(ours, kReading), reads_ended) ||
      contradicted(kernel.writes, in_flight(ours, kWriting), writes_ended)) {
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
  const bool gone_now = kernel == 0 && ours.in_flight > 0;
  const bool ended = gone_now && gone == ours;
  gone = gone_now && !ended ? std::optional(ours) : std::nullopt;
  return ended;
}

void UnseenIo::observe(const model::DeviceSample& before, const model::DiskStats& kernel_before,
                       const model::DiskStats& kernel_after, const model::DeviceSample& after) {
  const std::optional<Sides> last = last_;
  last_ = Sides{seen(before), counted(kernel_after)};
  const std::uint64_t kernel = counted(kernel_before);
  if (!last || kernel < last->kernel || seen(after) != last->ours) {
    ios_ = windows_ = 0;
    return;
  }
  ios_ += kernel - last->kernel;
  windows_ += kernel > last->kernel ? 1 : 0;
}

std::optional<std::uint64_t> UnseenIo::ios() const {
  const bool certain = ios_ >= kCertain || (ios_ >= kCertainIfRepeated && windows_ >= kRepeatedWindows);
  return certain ? std::optional(ios_) : std::nullopt;
}

model::Findings Drift::observe(const model::Tick& tick) {
  model::Findings findings;
  std::vector<Value> values(tick.devices.size());
  const bool nothing_runs = tick.before && tick.before->own_cost.effort == model::Effort::nothing;
  devices_.observe(tick, [&](std::size_t number, const model::DeviceTick& device, Device& known) {
    if (std::exchange(known.kernel_account, device.kernel_account) != device.kernel_account) {
      known.unseen.restart();
    }
    if (nothing_runs) {
      known.unseen.restart();
    } else if (const auto& reading = device.account) {
      known.unseen.observe(reading->ours_before, reading->kernel_before, reading->kernel_after, reading->ours_after);
    }
    const bool requests = device.block.device->has_requests;
    const auto ios = known.unseen.ios();
    if (requests && !ios) {
      values[number].drift = device.drift;
      known.logged = false;
      return;
    }
    values[number].unseen = model::Unseen{ios, requests};
    if (!std::exchange(known.logged, true)) {
      findings.effects.lines.push_back(log::line(log::Level::warning, "{} is not measured: {}",
                                                 log::field("device", device.block.device->name),
                                                 model::unseen_text(requests)));
    }
  });
  findings.values = [values = std::move(values)](model::Snapshot& snapshot) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      snapshot.devices[i].drift = values[i].drift;
      snapshot.devices[i].unseen = values[i].unseen;
      if (values[i].unseen) {
        snapshot.devices[i].io = nullptr;
      }
    }
  };
  return findings;
}

}  // namespace ssdpulse::block
