// SPDX-License-Identifier: Apache-2.0
// Discards: the stage that finds and reports bursts of discards, joined with the volumes to which they are submitted
// and with what is on them. Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "daemon/base/outside_text.h"
#include "daemon/discards/discard_bursts.h"
#include "daemon/model/device.h"
#include "daemon/model/stage.h"

namespace ssdpulse::discards {

/// The volumes whose file system is mounted with discard; those where programs also discard in its name are `true`.
using DiscardingVolumes = std::map<std::string, bool>;
DiscardingVolumes volumes_with_discard(const model::Inventory& inventory);

/// Of the file systems that lie directly on these volumes.
std::set<util::OutsideText> mountpoints(const std::set<std::string>& volumes, const model::Inventory& inventory);

/// Those of the volumes that are not on the device itself; for a partition of an array, the array.
std::set<std::string> arrays_among(const std::set<std::string>& volumes, const std::string& device,
                                   const model::Inventory& inventory);

using VolumesByDevice = std::map<std::string, std::map<std::string, DiscardVolume>>;

/// The watched volumes, by the device that carries out what is sent to them; they point into `submitted`.
/// `with_discard`: the volumes where kernel threads, and perhaps programs, are `online`. A disk is used like its
/// partitions: what is sent to a partition that cannot be distinguished counts for the disk.
VolumesByDevice volumes_by_device(const std::map<std::string, model::DiscardSubmitters>& submitted,
                                  const model::Inventory& inventory, const DiscardingVolumes& with_discard);

/// Each burst that ends becomes a history row and a log line (rate-limited), with the names of what was discarded on.
class Discards final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  struct Device {
    DiscardBurstFinder finder;
    std::array<std::uint64_t, model::kDiscardTriggers> announced{};  // begin of the running burst that was logged
  };
  /// The two clocks at one tick.
  struct ClockPair {
    std::uint64_t at_ns = 0;
    model::WallTime wall;
  };
  using Lines = std::vector<log::Line>;
  [[nodiscard]] model::WallTime wall_of(std::uint64_t at_ns) const;
  void observe_device(const model::DeviceTick& device, Device& known, std::map<std::string, DiscardVolume> volumes,
                      const model::Tick& tick, model::Effects& effects);
  void report(const std::string& device, const DiscardBurst& burst, const model::Tick& tick, Lines& lines);
  [[nodiscard]] std::vector<model::ArrayDiscards> arrays(const model::Tick& tick) const;

  model::PerDevice<Device> devices_;
  std::deque<ClockPair> clocks_;    // the last ones, oldest first
  DiscardingVolumes with_discard_;  // at the last tick
  FilesystemDiscardCounter filesystems_;
  log::Limiter limiter_{std::chrono::minutes(1)};
  log::Limiter small_limiter_{std::chrono::hours(1)};  // of small bursts
};

}  // namespace ssdpulse::discards
