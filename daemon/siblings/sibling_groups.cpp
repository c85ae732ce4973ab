// SPDX-License-Identifier: Apache-2.0
#include "daemon/siblings/sibling_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "daemon/model/device_identity.h"

namespace ssdpulse::siblings {
namespace {

using model::SiblingGroup;
using model::SiblingKind;

using Measured = std::map<std::string, const model::DeviceTick*>;  // by name

/// A drive, and the block devices that it has, measured or not: namespaces, or the boot areas of a card.
using Drives =
    std::map<std::tuple<util::OutsideText, util::OutsideText, util::OutsideText>, std::set<util::OutsideText>>;

std::tuple<util::OutsideText, util::OutsideText, util::OutsideText> drive_of(const model::Device& device) {
  return {device.model, device.serial, device.subsystem};
}

/// By the drive's own list where its logs are read, else by what else on this host has its serial number.
bool shares_its_drive(const model::DeviceTick& tick, const Drives& drives) {
  if (tick.drive && tick.drive->identity->namespaces.size() > 1) {
    return true;
  }
  const auto drive = drives.find(drive_of(*tick.block.device));
  return drive != drives.end() && drive->second.size() > 1;
}

/// An array, and what of its members must be equal.
using ArrayKey = std::tuple<int, std::string, util::OutsideText, bool>;

std::vector<SiblingGroup> groups_of_arrays(const model::Inventory& inventory, const Measured& measured,
                                           const std::set<std::string>& paths) {
  std::map<ArrayKey, SiblingGroup> arrays;  // md before dm
  for (const model::Membership& one : inventory.memberships) {
    const auto member = measured.find(one.device);
    if (member == measured.end() || (paths.contains(one.device) && !one.multipath)) {
      continue;
    }
    const model::Device& device = *member->second->block.device;
    SiblingGroup& group = arrays[{one.kind == "md" ? 0 : 1, one.array, device.model, device.rotational}];
    group.name = one.array;
    group.kind = one.multipath ? SiblingKind::paths : SiblingKind::array;
    group.members.push_back(one.device);
  }
  std::vector<SiblingGroup> groups;
  std::set<std::vector<std::string>> known;
  for (auto& [key, group] : arrays) {
    std::sort(group.members.begin(), group.members.end());
    group.members.erase(std::unique(group.members.begin(), group.members.end()), group.members.end());
    if (group.members.size() >= min_members(group.kind) && known.insert(group.members).second) {
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

/// SSDs of one model; volumes of a cloud may be of one model and of several speeds. On disks that spin, the time of an
/// I/O depends on how far apart the data are.
std::vector<SiblingGroup> groups_of_models(const Measured& measured, const std::set<std::string>& paths) {
  std::map<std::tuple<util::OutsideText, util::OutsideText, std::uint64_t>, SiblingGroup> models;
  for (const auto& [name, tick] : measured) {
    const model::Device& device = *tick->block.device;
    if (!device.model.empty() && !device.rotational && !paths.contains(name) &&
        model::medium_of(device, tick->drive.get()) != model::Medium::software) {
      SiblingGroup& group = models[{device.model, device.firmware, device.size_bytes}];
      group.name = model::kSameModel;
      group.kind = SiblingKind::model;
      group.members.push_back(name);
    }
  }
  std::vector<SiblingGroup> groups;
  for (auto& [key, group] : models) {
    if (group.members.size() >= min_members(group.kind)) {
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

}  // namespace

model::SiblingFigures sibling_groups(const model::Tick& tick) {
  Drives drives;
  for (const model::Device& device : tick.inventory->devices) {
    if (!device.serial.empty()) {
      // Units of one SCSI target (LUNs) have nothing else that differs; paths to one of them have it in common.
      const bool has_units = device.transport == "scsi" || device.transport == "sas" || device.transport == "usb";
      drives[drive_of(device)].insert(has_units ? device.wwid : util::OutsideText(device.part));
    }
  }
  Measured measured;
  for (const model::DeviceTick& device : tick.devices) {
    if (device.block.io && !shares_its_drive(device, drives)) {
      measured.emplace(device.block.device->name, &device);
    }
  }
  std::set<std::string> paths;
  for (const model::Membership& one : tick.inventory->memberships) {
    if (one.multipath) {
      paths.insert(one.device);
    }
  }
  std::vector<SiblingGroup> groups = groups_of_arrays(*tick.inventory, measured, paths);
  for (SiblingGroup& group : groups_of_models(measured, paths)) {
    const bool is_array = std::any_of(groups.begin(), groups.end(),
                                      [&](const SiblingGroup& one) { return one.members == group.members; });
    if (!is_array) {
      groups.push_back(std::move(group));
    }
  }
  std::size_t places = 0;
  const std::size_t left_out = std::erase_if(groups, [&](const SiblingGroup& group) {
    const bool fits = places + group.members.size() <= kMaxPlaces;
    places += fits ? group.members.size() : 0;
    return !fits;
  });
  return {.groups = std::move(groups), .groups_left_out = left_out};
}

}  // namespace ssdpulse::siblings
