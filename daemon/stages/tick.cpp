// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/tick.h"

#include <tuple>
#include <utility>

namespace ssdpulse::stages {

void join_drives(Tick& tick) {
  std::map<std::string, std::pair<std::shared_ptr<const model::NvmeDrive>, const model::NvmeNamespace*>> by_device;
  for (const model::DriveTick& one : tick.drives) {
    for (const model::NvmeNamespace& entry : one.drive->identity->namespaces) {
      by_device[entry.device] = {one.drive, &entry};
    }
  }
  for (DeviceTick& device : tick.devices) {
    if (const auto found = by_device.find(device.block.device->name); found != by_device.end()) {
      std::tie(device.drive, device.drive_namespace) = found->second;
    }
  }
}

}  // namespace ssdpulse::stages
