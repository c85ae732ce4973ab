// SPDX-License-Identifier: Apache-2.0
// DeviceEvents: the log lines that an operator looks for first. Which disk appeared, which one is gone, which ones have
// one identity, and which one returns errors? Disks that are there at the first tick have not appeared.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "daemon/model/device.h"
#include "daemon/model/device_identity.h"
#include "daemon/stages/per_device.h"
#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class DeviceEvents final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  void report_clashes(const Tick& tick, std::vector<log::Line>& lines);

  struct State {
    std::uint64_t errors = 0;  // so far, without those of kIgnored
    bool seen = false;         // when it is seen again, it has not just arrived
  };

  PerDevice<State> devices_;
  std::map<std::string, std::shared_ptr<const model::Device>> before_;  // of the last tick
  std::shared_ptr<const model::Inventory> inventory_;                   // for the next
  std::vector<model::IdentityClash> clashes_;
  bool first_ = true;
  log::Limiter limiter_{std::chrono::minutes(10)};  // lines about errors, by device
};

}  // namespace ssdpulse::stages
