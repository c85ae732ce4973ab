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

/// The identity is what stays when the kernel gives a device another name: WWID, else model and serial number, else the
/// name. Copies of one virtual disk report the same one: the first copy keeps it, the others get their names appended,
/// while they exist.
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
    std::string says;  // the identity that it reports
    history::DeviceKey key;
  };
  std::map<std::string, Known> known_;  // by name
};

}  // namespace ssdpulse::stages
