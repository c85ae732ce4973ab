// SPDX-License-Identifier: Apache-2.0
// DeviceMinutes: the stage that turns the cumulative counters of each measured device into a history row per minute.
// Intervals and HistoryKeys prepare each tick for it and for all other stages: what each device did since the tick
// before, and its identity in the history. All must see every tick, and are for one thread.
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

class Intervals {
 public:
  /// Sets DeviceTick::interval of each device.
  void set_intervals(model::Tick& tick);

 private:
  std::map<std::string, std::shared_ptr<const model::DeviceIo>> before_;  // of the devices of the last tick
  model::SteadyTime at_;
};

/// A device's identity stays when the kernel gives it another name: see model/device_identity.h. While several devices
/// share one, that of each also says where it is attached; a device keeps that until it disappears, because the history
/// under the bare identity may be that of any of them.
class HistoryKeys {
 public:
  /// Sets the history_key of each device.
  void set_history_keys(model::Tick& tick);

 private:
  struct KeyedDevice {
    std::shared_ptr<const model::Device> device;
    bool clashes = false;  // or did so
    std::shared_ptr<const model::DeviceKey> key;
  };
  void learn(const model::Tick& tick);

  std::map<std::string, KeyedDevice> devices_;  // by name
};

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
