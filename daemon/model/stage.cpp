// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/stage.h"

#include <tuple>

namespace ssdpulse::model {

void join_drives(Tick& tick) {
  std::map<std::string, std::pair<std::shared_ptr<const NvmeDrive>, const NvmeNamespace*>> by_device;
  for (const DriveTick& drive_tick : tick.drives) {
    for (const NvmeNamespace& entry : drive_tick.drive->identity->namespaces) {
      by_device[entry.device] = {drive_tick.drive, &entry};
    }
  }
  for (DeviceTick& device : tick.devices) {
    if (const auto found = by_device.find(device.block.device->name); found != by_device.end()) {
      std::tie(device.drive, device.drive_namespace) = found->second;
    }
  }
}

}  // namespace ssdpulse::model
