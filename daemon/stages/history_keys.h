// SPDX-License-Identifier: Apache-2.0
// HistoryKeys: the identity of each device in the history. Each stage that needs it has its own object, and passes it
// the devices of every tick. Objects that see the same ticks give the same answers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/history/rows.h"
#include "daemon/stages/tick.h"

namespace ssdpulse::stages {

/// The identity is what stays when the kernel gives a device another name: see model/device_identity.h. While several
/// devices have one, that of each also says where it is attached; a device keeps that until it disappears, because the
/// history under the identity alone may be that of any of them.
class HistoryKeys {
 public:
  /// `devices`: all that exist now.
  void look(const std::vector<DeviceTick>& devices);

  /// By the kernel's name; null: no such device in the last look().
  [[nodiscard]] const history::DeviceKey* of(const std::string& name) const;
  /// Whether a device has this identity now.
  [[nodiscard]] bool has(const std::string& identity) const;

 private:
  struct Known {
    std::shared_ptr<const model::Device> device;
    bool clashes = false;  // or did so
    history::DeviceKey key;
  };
  std::map<std::string, Known> known_;  // by name
};

}  // namespace ssdpulse::stages
