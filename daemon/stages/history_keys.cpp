// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/history_keys.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/model/device_identity.h"

namespace ssdpulse::stages {
namespace {

history::DeviceKey make_key(const model::Device& device, model::DistinctIdentity distinct) {
  history::DeviceKey key{std::move(distinct.text), device.name, util::for_history(device.model),
                         util::for_history(device.serial)};
  const model::DeviceIdentity identity = model::identity_of(device);
  if (!distinct.clashes && identity.lasts()) {
    key.without_wwid = identity.text_without_wwid();
    key.attached = device.attachment.empty() ? "" : key.identity + " | at " + util::for_history(device.attachment);
  }
  return key;
}

}  // namespace

void HistoryKeys::learn(const Tick& tick) {
  std::vector<const model::Device*> present;
  for (const DeviceTick& one : tick.devices) {
    present.push_back(one.block.device.get());
  }
  auto distinct = model::distinct_identities(present);
  const std::map<std::string, KeyedDevice> before = std::exchange(devices_, {});
  for (const DeviceTick& one : tick.devices) {
    const std::shared_ptr<const model::Device>& device = one.block.device;
    KeyedDevice now{device, distinct.at(device->name).clashes,
                    std::make_shared<const history::DeviceKey>(make_key(*device, distinct.at(device->name)))};
    const auto old = before.find(device->name);
    if (!now.clashes && old != before.end() && old->second.clashes &&
        model::identity_of(*old->second.device) == model::identity_of(*device)) {
      now.clashes = true;
      now.key = old->second.key;
    }
    devices_.emplace(device->name, std::move(now));
  }
}

void HistoryKeys::give(Tick& tick) {
  const bool same = tick.devices.size() == devices_.size() &&
                    std::all_of(tick.devices.begin(), tick.devices.end(), [&](const DeviceTick& one) {
                      const auto known = devices_.find(one.block.device->name);
                      return known != devices_.end() && known->second.device == one.block.device;
                    });
  if (!same) {
    learn(tick);
  }
  for (DeviceTick& device : tick.devices) {
    device.history_key = devices_.at(device.block.device->name).key;
  }
}

}  // namespace ssdpulse::stages
