// SPDX-License-Identifier: Apache-2.0
// Counter differences between two moments of rest. Unsigned subtraction, then a signed cast: no count is too large.
#include "daemon/analysis/accounting_drift.h"

#include <initializer_list>

namespace ssdpulse::analysis {
namespace {

using model::index;
using model::Operation;

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

}  // namespace

OurCounts compose_counts(const model::DeviceIo& io, const model::OperationEvents& unseen) {
  const auto ended = [&](std::initializer_list<Operation> operations) {
    std::uint64_t count = 0;
    for (const Operation operation : operations) {
      const model::OperationIo& one = io.operation(operation);
      // On failover the path's request ends for good; its bios return in another one.
      count += one.completions + one.unissued_completions + one.requeues[index(model::RequeueReason::failover)] +
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

}  // namespace ssdpulse::analysis
