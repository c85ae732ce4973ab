// SPDX-License-Identifier: Apache-2.0
// Utilisation: the stage that follows how busy each device is, by the kernel's own account of the time in which
// anything was in flight, which it counts in steps of a jiffy (what iostat shows as %util); and how much was in flight
// at each tick, by our own.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "daemon/model/stage.h"

namespace ssdpulse::block {

class Utilisation final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  static constexpr std::chrono::seconds kWindow{2};  // at least, over which the share is determined

  struct Reading {
    model::SteadyTime at;
    std::uint64_t busy_ms = 0;
  };
  struct Device {
    std::uint64_t kernel_account = 0;
    bool each_second = false;           // the disk has its own line in /proc/diskstats
    std::deque<Reading> readings = {};  // over kWindow and one more
    std::optional<model::Utilisation> last = {};
    model::DepthHistogram depth = {};
  };
  /// Also whether it is read each second.
  static std::pair<std::optional<std::uint64_t>, bool> busy_ms_of(const model::Tick& tick,
                                                                  const model::DeviceTick& device);

  model::PerDevice<Device> devices_;
};

}  // namespace ssdpulse::block
