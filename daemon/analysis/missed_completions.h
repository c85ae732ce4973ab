// SPDX-License-Identifier: Apache-2.0
// Finds requests that are in flight only in our count, because no program saw them end.
//
// A kernel may end a request without calling any program (on some virtual machines while an interrupt hits certain
// tasks, for milliseconds at a time). We keep such a request in flight until another one takes its slot, which on an
// idle disk looks like a stall. The kernel's own count tells the two apart: if it has nothing in flight at two reads,
// and nothing happened in between, our requests have ended.
//
// The kernel's count has gaps of its own. It leaves out flushes and passthrough, and counts zone management under
// either direction, depending on its version: there is no verdict on these. It also leaves out a request that the
// driver gave back and that waits to be issued again; but diskstats show that such a request has not ended.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "daemon/analysis/accounting_drift.h"
#include "daemon/model/operation.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::analysis {

/// What the kernel counts as reads and as writes in flight.
inline constexpr std::array kReading{model::Operation::read};
inline constexpr std::array kWriting{model::Operation::write, model::Operation::discard, model::Operation::write_zeroes,
                                     model::Operation::secure_erase};

/// Returns `kernel`, unless it has none in flight where we have some and diskstats do not show that those have ended.
/// `lead` comes from AccountingDrift; without it, diskstats show nothing.
std::optional<model::KernelInFlight> plausible(const model::KernelInFlight& kernel, const model::DeviceIo& ours,
                                               const std::optional<KernelLead>& lead);

/// For one device; one call per tick.
class MissedCompletions {
 public:
  /// Whether to ask the kernel: something is in flight, and nothing has ended since the last call.
  [[nodiscard]] bool stands_still(const model::DeviceIo& ours) const;

  /// The directions in which everything that we have in flight has ended unseen.
  struct Ended {
    bool reads = false;
    bool writes = false;
  };
  /// `kernel`: absent if it was not asked or is not plausible.
  Ended observe(const model::DeviceIo& ours, const std::optional<model::KernelInFlight>& kernel);

 private:
  /// What was counted in one direction: equal at two looks iff nothing happened between them.
  struct Counts {
    std::int64_t in_flight = 0;
    std::uint64_t issues = 0;
    std::uint64_t ends = 0;
    bool operator==(const Counts&) const = default;
  };
  struct Direction {
    Counts last;
    std::optional<Counts> gone;  // at the last call, the kernel had none of these in flight

    bool observe(const Counts& ours, std::optional<std::int64_t> kernel);
  };
  static Counts counts(const model::DeviceIo& io, std::span<const model::Operation> operations);

  Direction reads_;
  Direction writes_;
};

}  // namespace ssdpulse::analysis
