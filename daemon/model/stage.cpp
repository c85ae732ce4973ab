// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/stage.h"

#include <tuple>
#include <utility>

namespace ssdpulse::model {

void join_drives(Tick& tick) {
  std::map<std::string, std::pair<std::shared_ptr<const NvmeDrive>, const NvmeNamespace*>> by_device;
  for (const DriveTick& one : tick.drives) {
    for (const NvmeNamespace& entry : one.drive->identity->namespaces) {
      by_device[entry.device] = {one.drive, &entry};
    }
  }
  for (DeviceTick& device : tick.devices) {
    if (const auto found = by_device.find(device.block.device->name); found != by_device.end()) {
      std::tie(device.drive, device.drive_namespace) = found->second;
    }
  }
}

}  // namespace ssdpulse::model
