// SPDX-License-Identifier: Apache-2.0
// Discards: the stage that finds and reports bursts of discards. It passes each device's requests, and what was
// submitted to the device, its partitions and the arrays above it, to the analysis. Each burst that ends becomes a
// history row and a log line (rate-limited), with the names of what was discarded on.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "daemon/analysis/discard_bursts.h"
#include "daemon/analysis/filesystem_discards.h"
#include "daemon/stages/discard_volumes.h"
#include "daemon/stages/per_device.h"
#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class Discards final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  struct Device {
    analysis::DiscardBurstFinder finder;
    std::array<std::uint64_t, model::kDiscardTriggers> announced{};  // begin of the running burst that was logged
  };
  /// The two clocks at one tick.
  struct ClockPair {
    std::uint64_t at_ns = 0;
    model::WallTime wall;
  };
  using Lines = std::vector<log::Line>;
  [[nodiscard]] model::WallTime wall_of(std::uint64_t at_ns) const;
  void observe_device(const DeviceTick& device, Device& known, std::map<std::string, analysis::DiscardVolume> volumes,
                      const Tick& tick, Effects& effects);
  void report(const std::string& device, const analysis::DiscardBurst& burst, const Tick& tick, Lines& lines);
  [[nodiscard]] std::string wall_time(std::uint64_t at_ns) const;
  [[nodiscard]] std::vector<model::ArrayDiscards> arrays(const Tick& tick) const;
  [[nodiscard]] std::array<bool, model::kDiscardTriggers> active_on(const std::string& array,
                                                                    const model::Inventory& inventory) const;

  PerDevice<Device> devices_;
  std::deque<ClockPair> clocks_;    // the last ones, oldest first
  DiscardingVolumes with_discard_;  // at the last tick
  analysis::FilesystemDiscardCounter filesystems_;
  log::Limiter limiter_{std::chrono::minutes(1)};
  log::Limiter small_limiter_{std::chrono::hours(1)};  // of small bursts
};

}  // namespace ssdpulse::stages
