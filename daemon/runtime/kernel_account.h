// SPDX-License-Identifier: Apache-2.0
// KernelAccount: what the kernel itself counts for one device, read alongside our own counts. Determines which of our
// I/Os in flight have ended by the kernel's account although no program saw them end. VolumeAccounts: the same of all
// volumes. Owned by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/block/accounting_drift.h"
#include "daemon/host/disk_stats.h"
#include "daemon/host/inventory.h"
#include "daemon/model/stage.h"

namespace ssdpulse::runtime {

class KernelAccount {
 public:
  /// Nothing if the kernel keeps no account of the device (iostats is 0), or the account cannot be read.
  /// `number`: different for each account, never 0.
  static std::optional<KernelAccount> open(const host::InventoryRoots& roots, const model::Device& device,
                                           std::uint64_t number);

  /// Whether the device is still the one that this was opened for, and the kernel still counts it. If it is
  /// another one, the files belong to one that is gone.
  [[nodiscard]] bool is_of(const model::Device& now) const;

  [[nodiscard]] std::uint64_t number() const { return number_; }

  /// Whether there has been a comparison. Until then it is not known which requests ended unseen: the first one is due
  /// at once.
  [[nodiscard]] bool compared() const { return compared_; }

  /// Compares `ours` and the kernel's account once. `sample_again`: samples our side again; nothing if that fails.
  std::optional<model::AccountReading> compare(const model::DeviceSample& ours,
                                               const std::function<std::optional<model::DeviceSample>()>& sample_again);

  /// As of the last comparison that counted: see block::AccountingDrift.
  [[nodiscard]] const model::AccountingDrift& drift() const { return drift_.value(); }

  struct InFlight {
    std::optional<model::KernelInFlight> kernel;  // read only when nothing moves, set only if plausible
    block::MissedCompletions::Ended ended;        // whether all that we have in flight in a direction has ended
  };
  /// Called once each tick. A completion that no program saw leaves its request in flight, which looks like a
  /// standstill: the kernel's own count distinguishes the two.
  InFlight find_missed(const model::DeviceSample& ours);

 private:
  KernelAccount(model::Device device, std::uint64_t number) : device_(std::move(device)), number_(number) {}
  [[nodiscard]] util::Result<model::DiskStats> read_stats() const;
  [[nodiscard]] util::Result<model::KernelInFlight> read_in_flight() const;

  model::Device device_;
  std::uint64_t number_;
  std::vector<host::DiskStatsFile> files_;  // one for each path
  bool compared_ = false;
  std::optional<model::WallTime> since_;  // of our counters; absent before the first comparison
  block::AccountingDrift drift_;          // also how far the kernel is ahead of us
  block::MissedCompletions missed_;
};

/// The kernel's own count of each volume's bytes, compared with ours whenever nothing is in flight and nothing happens
/// while both are read. (Its count of I/Os is one of pieces.)
class VolumeAccounts {
 public:
  using Bios = std::vector<std::shared_ptr<const model::BioIo>>;

  /// To be called when volumes appeared or disappeared.
  void update(const model::Inventory& inventory);
  /// `kernel`: what was read after `bios`. `read_again`: reads our side again; what has not changed is the same object.
  void compare(const Bios& bios, const host::AllDiskStats& kernel, const std::function<Bios()>& read_again);
  /// Volumes with bios in flight, of which none has ended since the last call.
  std::set<std::string> standing_still(const Bios& bios);
  /// As of the last comparison of each, by volume.
  [[nodiscard]] const std::map<std::string, model::VolumeDrift>& drift() const { return drift_; }

 private:
  struct Account {
    model::WallTime since;                     // of our counters
    std::optional<model::VolumeDrift> before;  // of the last comparison
    std::optional<model::VolumeDrift> baseline;
  };
  void observe(const model::BioIo& ours, const model::DiskStats& kernel, Account& account);

  std::set<std::string> uncounted_;              // by the kernel
  std::map<std::string, std::uint64_t> layers_;  // their diskseq; see model::Layer
  std::set<std::string> created_;                // while we were looking, and without an account yet
  bool updated_ = false;
  std::map<std::string, Account> accounts_;
  std::map<std::string, model::VolumeDrift> drift_;
  std::map<std::string, std::uint64_t> ended_;  // bios, by volume
};

}  // namespace ssdpulse::runtime
