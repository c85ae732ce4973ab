// SPDX-License-Identifier: Apache-2.0
// DeviceEvents: the log lines that an operator looks for first. Which disk came, which one is gone, and which one
// returns errors? What is there at the first tick did not come.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "daemon/model/device.h"
#include "daemon/stages/per_device.h"
#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class DeviceEvents final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  struct State {
    std::uint64_t errors = 0;  // so far, without those of kIgnored
    bool seen = false;         // a later look at it is not its arrival
  };

  PerDevice<State> devices_;
  std::map<std::string, std::shared_ptr<const model::Device>> before_;  // of the last tick
  bool first_ = true;
  log::Limiter limiter_{std::chrono::minutes(10)};  // lines on errors, by device
};

}  // namespace ssdpulse::stages
