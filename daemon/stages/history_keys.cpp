// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/history_keys.h"

#include <algorithm>
#include <utility>

namespace ssdpulse::stages {
namespace {

std::string identity_of(const model::Device& device) {
  if (!device.wwid.empty()) {
    return device.wwid;
  }
  return device.serial.empty() ? device.name : device.model + " " + device.serial;
}

}  // namespace

void HistoryKeys::look(const std::vector<DeviceTick>& devices) {
  std::map<std::string, Known> before = std::exchange(known_, {});
  std::vector<Known> others;
  for (const DeviceTick& one : devices) {
    const std::shared_ptr<const model::Device>& device = one.block.device;
    auto old = before.extract(device->name);
    if (!old.empty() && old.mapped().device == device) {
      known_.insert(std::move(old));
      continue;
    }
    std::string says = identity_of(*device);
    if (!old.empty() && old.mapped().says == says) {
      std::string identity = std::move(old.mapped().key.identity);
      old.mapped() = {device, std::move(says), {std::move(identity), device->name, device->model, device->serial}};
      known_.insert(std::move(old));
    } else {
      others.push_back({device, std::move(says), {"", device->name, device->model, device->serial}});
    }
  }
  for (Known& other : others) {
    other.key.identity = has(other.says) ? other.says + " " + other.key.name : other.says;
    std::string name = other.key.name;
    known_.emplace(std::move(name), std::move(other));
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
