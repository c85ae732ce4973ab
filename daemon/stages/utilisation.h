// SPDX-License-Identifier: Apache-2.0
// Utilisation: the stage that follows how busy each device is, by the kernel's own account of the time in which
// anything was in flight, which it counts in steps of a jiffy (what iostat shows as %util).
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/stages/per_device.h"
#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class Utilisation final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  struct Device {
    std::uint64_t kernel_account = 0;
    std::optional<model::SteadyTime> at = {};  // of the last reading of the kernel's account
    std::uint64_t busy_ms = 0;
    std::optional<model::Utilisation> last = {};
  };

  PerDevice<Device> devices_;
};

}  // namespace ssdpulse::stages
