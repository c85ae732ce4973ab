// SPDX-License-Identifier: Apache-2.0
// DeviceMinutes: the stage that turns the cumulative counters of each measured device into a history row per minute.
// Every I/O is in exactly one row, even if a device disappears within a minute, or another one takes its name.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class DeviceMinutes final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  struct Counted {
    history::DeviceKey key;
    std::shared_ptr<const model::DeviceIo> begin;  // null: counted from nothing
    model::SteadyTime begin_at;
    std::shared_ptr<const model::DeviceIo> last;
    model::SteadyTime last_at;
    std::shared_ptr<const model::DeviceTenants> begin_tenants = {};  // like the counters; null: nobody yet
    std::shared_ptr<const model::DeviceTenants> last_tenants = {};
  };
  void end(const Counted& known, history::Minute minute, history::Batch& rows) const;
  void take(const Tick& tick, history::Minute minute, history::Batch& rows);

  std::map<std::string, Counted> counted_;  // by name
  std::optional<history::Minute> minute_;
};

}  // namespace ssdpulse::stages
