// SPDX-License-Identifier: Apache-2.0
// Under which identity is a device in the history? Each stage that asks has one of these and shows it every tick: all
// that see the same ticks give the same answers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/history/rows.h"
#include "daemon/stages/tick.h"

namespace ssdpulse::stages {

/// What stays when the kernel gives a device another name: WWID, else model and serial number, else the name. Copies of
/// one virtual disk report the same: the first one has it, the others have their names appended, while they exist.
class HistoryKeys {
 public:
  /// `devices`: all that exist now.
  void look(const std::vector<DeviceTick>& devices);

  /// By name; null: there was no such device.
  [[nodiscard]] const history::DeviceKey* of(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& identity) const;

 private:
  struct Known {
    std::shared_ptr<const model::Device> device;
    std::string says;  // about itself
    history::DeviceKey key;
  };
  std::map<std::string, Known> known_;  // by name
};

}  // namespace ssdpulse::stages
