// SPDX-License-Identifier: Apache-2.0
// DeviceMinutes: the stage that turns the cumulative counters of each measured device into a history row per minute. It
// must see every tick.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/model/clock.h"
#include "daemon/model/history_rows.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/stage.h"

namespace ssdpulse::history {

/// Every I/O is in exactly one row, even if a device disappears within a minute, or another one takes its name.
class DeviceMinutes final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  struct Counted {
    model::DeviceKey key;
    std::shared_ptr<const model::DeviceIo> begin;  // null: counted from nothing
    model::SteadyTime begin_at;
    std::shared_ptr<const model::DeviceIo> last;
    model::SteadyTime last_at;
    std::shared_ptr<const model::DeviceTenants> begin_tenants = {};  // like the counters; null: nobody yet
    std::shared_ptr<const model::DeviceTenants> last_tenants = {};
  };
  void end(const Counted& known, model::Minute minute, model::Batch& rows) const;
  void take(const model::Tick& tick, model::Minute minute, model::Batch& rows);

  std::map<std::string, Counted> counted_;  // by name
  std::optional<model::Minute> minute_;
};

}  // namespace ssdpulse::history
