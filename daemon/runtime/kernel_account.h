// SPDX-License-Identifier: Apache-2.0
// What does the kernel itself count of one device? Reads its account next to ours, and says which of our I/Os in flight
// it shows to have ended although no program saw them end.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "daemon/analysis/accounting_drift.h"
#include "daemon/analysis/missed_completions.h"
#include "daemon/sources/inventory/disk_stats.h"
#include "daemon/sources/inventory/inventory.h"
#include "daemon/stages/tick.h"

namespace ssdpulse::runtime {

class KernelAccount {
 public:
  /// Nothing where the kernel keeps none of the device (iostats is 0), or it cannot be read.
  /// `number`: tells it from all others, not 0.
  static std::optional<KernelAccount> open(const inventory::InventoryRoots& roots, const model::Device& device,
                                           std::uint64_t number);

  /// Whether the device still is the one that this was opened for; else its files tell of one that is gone.
  [[nodiscard]] bool is_of(const model::Device& now) const;

  [[nodiscard]] std::uint64_t number() const { return number_; }

  /// Whether there was a comparison. Until then it is not known which requests have ended unseen: the first is due at
  /// once.
  [[nodiscard]] bool compared() const { return compared_; }

  /// One look from both sides. `sample_again`: our side once more; nothing where it fails.
  std::optional<stages::AccountLook> compare(const model::DeviceSample& ours,
                                             const std::function<std::optional<model::DeviceSample>()>& sample_again);

  struct InFlight {
    std::optional<model::KernelInFlight> kernel;  // asked only where nothing moves, and only if believed
    analysis::MissedCompletions::Ended ended;     // all that we have in flight in that direction
  };
  /// Once each tick. A completion that no program saw leaves its request in flight, which looks like a standstill: the
  /// kernel's own count tells the two apart.
  InFlight look_for_missed(const model::DeviceSample& ours);

 private:
  KernelAccount(model::Device device, std::uint64_t number) : device_(std::move(device)), number_(number) {}
  [[nodiscard]] util::Result<model::DiskStats> read_stats() const;
  [[nodiscard]] util::Result<model::KernelInFlight> read_in_flight() const;

  model::Device device_;
  std::uint64_t number_;
  std::vector<inventory::DiskStatsFile> files_;  // one for each path
  bool compared_ = false;
  analysis::AccountingDrift drift_;  // tells how far the kernel is ahead of us
  analysis::MissedCompletions missed_;
};

}  // namespace ssdpulse::runtime
