// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/discard_volumes.h"

#include <algorithm>
#include <string_view>

#include "daemon/analysis/filesystem_discards.h"

namespace ssdpulse::stages {

DiscardingVolumes volumes_with_discard(const model::Inventory& inventory) {
  DiscardingVolumes result;
  for (const model::Filesystem& filesystem : inventory.filesystems) {
    if (filesystem.discard) {
      for (const std::string& volume : filesystem.volumes) {
        result[volume] |= analysis::callers_discard(filesystem);
      }
    }
  }
  return result;
}

std::set<util::OutsideText> mountpoints(const std::set<std::string>& volumes, const model::Inventory& inventory) {
  std::set<util::OutsideText> result;
  for (const model::Filesystem& filesystem : inventory.filesystems) {
    if (std::any_of(filesystem.volumes.begin(), filesystem.volumes.end(),
                    [&](const std::string& volume) { return volumes.count(volume) != 0; })) {
      result.insert(filesystem.mountpoint);
    }
  }
  return result;
}

std::set<std::string> arrays_among(const std::set<std::string>& volumes, const std::string& device,
                                   const model::Inventory& inventory) {
  std::set<std::string> result;
  for (const model::Volume& volume : inventory.volumes) {
    if (volume.device != device && volumes.count(volume.name) != 0) {
      result.insert(volume.device);
    }
  }
  return result;
}

VolumesByDevice volumes_by_device(const std::map<std::string, model::DiscardSubmitters>& submitted,
                                  const model::Inventory& inventory, const DiscardingVolumes& with_discard) {
  std::map<std::string, analysis::DiscardVolume> uses;
  for (const model::Volume& volume : inventory.volumes) {
    const auto discarding = with_discard.find(volume.name);
    for (const std::string& name : {volume.name, volume.device}) {
      uses[name].mounted_with_discard |= discarding != with_discard.end();
      uses[name].callers_discard |= discarding != with_discard.end() && discarding->second;
      uses[name].carries_array |= volume.carries_array;
    }
  }
  std::multimap<std::string_view, std::string> members;
  for (const model::Membership& member : inventory.memberships) {
    members.emplace(member.array, member.device);
  }
  VolumesByDevice result;
  for (const model::Volume& volume : inventory.volumes) {
    const auto found = submitted.find(volume.name);
    if (found == submitted.end()) {
      continue;
    }
    analysis::DiscardVolume& use = uses[volume.name];
    use.submitters = &found->second;
    result[volume.device][volume.name] = use;
    use.is_array = true;
    const auto [begin, end] = members.equal_range(volume.device);
    std::for_each(begin, end, [&](const auto& member) { result[member.second][volume.name] = use; });
  }
  return result;
}

}  // namespace ssdpulse::stages
