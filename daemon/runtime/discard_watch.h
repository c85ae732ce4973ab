// SPDX-License-Identifier: Apache-2.0
// DiscardWatch: the host's bursts of discards, and the log lines about them.
// At each tick, passes each device's requests, and who submitted to it, its partitions and the arrays above it, to the
// analysis; puts the result into the Snapshot and each burst's end into the log, with the names of what was discarded
// on. Owned by one thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "daemon/analysis/discard_bursts.h"
#include "daemon/analysis/filesystem_discards.h"
#include "daemon/model/snapshot.h"
#include "daemon/sources/block/block_source.h"
#include "daemon/util/log.h"

namespace ssdpulse::runtime {

class DiscardWatch {
 public:
  void set_gap(std::chrono::nanoseconds gap) { gap_ns_ = static_cast<std::uint64_t>(gap.count()); }

  /// The snapshot's devices are those of the sample, in the same order.
  void observe(const block::BlockSample& sample, const model::Inventory& inventory, model::Snapshot& snapshot);

 private:
  struct Device {
    model::WallTime since;  // another one: another disk
    analysis::DiscardBurstFinder finder;
    std::array<std::uint64_t, model::kDiscardTriggers> announced{};  // beginnings of bursts that are in the log
  };
  void observe_device(const block::DeviceSample& sample, std::map<std::string, analysis::DiscardVolume> volumes,
                      const model::Inventory& inventory, model::DeviceSnapshot& out);
  void observe_filesystems(const block::BlockSample& sample, const model::Inventory& inventory,
                           model::Snapshot& snapshot);
  void tell(const std::string& device, const analysis::DiscardBurst& burst, const model::Inventory& inventory);
  void tell_long_ones(const std::string& name, Device& device, const model::Inventory& inventory);
  [[nodiscard]] std::array<bool, model::kDiscardTriggers> active_on(const std::string& array,
                                                                    const model::Inventory& inventory) const;

  std::uint64_t gap_ns_ = 1'000'000'000;
  std::uint64_t now_ns_ = 0;
  std::map<std::string, Device> devices_;
  std::set<std::string> with_discard_;  // volumes whose file system is mounted so, at the last look
  analysis::FilesystemDiscardCounter filesystems_;
  log::Limiter limiter_{std::chrono::minutes(1)};
  log::Limiter small_limiter_{std::chrono::hours(1)};  // of small bursts
};

}  // namespace ssdpulse::runtime
