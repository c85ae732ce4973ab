// SPDX-License-Identifier: Apache-2.0
// HistoryKeys: gives each device of a tick its identity in the history, for all stages. Must see every tick.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "daemon/history/rows.h"
#include "daemon/stages/tick.h"

namespace ssdpulse::stages {

/// The identity is what stays when the kernel gives a device another name: see model/device_identity.h. While several
/// devices have one, that of each also says where it is attached; a device keeps that until it disappears, because the
/// history under the identity alone may be that of any of them.
class HistoryKeys {
 public:
  /// Sets the history_key of each device.
  void give(Tick& tick);

 private:
  struct KeyedDevice {
    std::shared_ptr<const model::Device> device;
    bool clashes = false;  // or did so
    std::shared_ptr<const history::DeviceKey> key;
  };
  void learn(const Tick& tick);

  std::map<std::string, KeyedDevice> devices_;  // by name
};

}  // namespace ssdpulse::stages
