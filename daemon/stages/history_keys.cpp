// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/history_keys.h"

#include <algorithm>
#include <utility>

#include "daemon/model/device_identity.h"

namespace ssdpulse::stages {
namespace {

/// Before identities had several fields.
std::string former_identity(const model::Device& device) {
  if (!device.wwid.empty()) {
    return util::for_history(device.wwid);
  }
  return device.serial.empty() ? device.name : util::for_history(device.model) + " " + util::for_history(device.serial);
}

history::DeviceKey key_of(const model::Device& device, model::DistinctIdentity distinct) {
  history::DeviceKey key{std::move(distinct.text), device.name, util::for_history(device.model),
                         util::for_history(device.serial)};
  const model::DeviceIdentity identity = model::identity_of(device);
  if (!distinct.clashes && identity.lasts()) {
    key.without_wwid = identity.text_without_wwid();
    key.former = former_identity(device);
    key.attached = device.attachment.empty() ? "" : key.identity + " | at " + util::for_history(device.attachment);
  }
  return key;
}

}  // namespace

void HistoryKeys::look(const std::vector<DeviceTick>& devices) {
  const bool same =
      devices.size() == known_.size() && std::all_of(devices.begin(), devices.end(), [&](const DeviceTick& one) {
        const auto known = known_.find(one.block.device->name);
        return known != known_.end() && known->second.device == one.block.device;
      });
  if (same) {
    return;
  }
  std::vector<const model::Device*> present;
  for (const DeviceTick& one : devices) {
    present.push_back(one.block.device.get());
  }
  auto distinct = model::distinct_identities(present);
  const std::map<std::string, Known> before = std::exchange(known_, {});
  for (const DeviceTick& one : devices) {
    const std::shared_ptr<const model::Device>& device = one.block.device;
    Known now{device, distinct.at(device->name).clashes, key_of(*device, distinct.at(device->name))};
    const auto old = before.find(device->name);
    if (!now.clashes && old != before.end() && old->second.clashes &&
        model::identity_of(*old->second.device) == model::identity_of(*device)) {
      now.clashes = true;
      now.key = old->second.key;
    }
    known_.emplace(device->name, std::move(now));
  }
}

const history::DeviceKey* HistoryKeys::of(const std::string& name) const {
  const auto found = known_.find(name);
  return found == known_.end() ? nullptr : &found->second.key;
}

bool HistoryKeys::has(const std::string& identity) const {
  return std::any_of(known_.begin(), known_.end(),
                     [&](const auto& known) { return known.second.key.identity == identity; });
}

}  // namespace ssdpulse::stages
