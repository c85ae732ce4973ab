// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/intervals.h"

#include <utility>

#include "daemon/model/device_interval.h"

namespace ssdpulse::stages {

void Intervals::give(Tick& tick) {
  const auto before = std::exchange(before_, {});
  const auto since = std::exchange(at_, tick.at);
  for (DeviceTick& device : tick.devices) {
    const auto& io = device.block.io;
    device.interval.reset();
    if (!io) {
      continue;
    }
    before_.emplace(device.block.device->name, io);
    const auto was = before.find(device.block.device->name);
    if (was == before.end() || was->second->since != io->since || tick.at <= since) {
      continue;
    }
    if (auto interval = model::between(*was->second, *io, tick.at - since)) {
      device.interval = std::make_shared<const model::DeviceInterval>(std::move(*interval));
    }
  }
}

}  // namespace ssdpulse::stages
