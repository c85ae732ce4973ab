// SPDX-License-Identifier: Apache-2.0
// The graph of <sys>/block/*/slaves. The kernel keeps it free of loops, but a reading while it changes may contain one,
// so visited disks are remembered.
#include "daemon/sources/inventory/stacking.h"

#include <algorithm>
#include <utility>

#include "daemon/sources/sysfs.h"

namespace ssdpulse::inventory {

namespace sysfs = sources::sysfs;

namespace {

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

bool is_dm(std::string_view disk) { return starts_with(disk, "dm-"); }
bool is_md(std::string_view disk) { return starts_with(disk, "md"); }

/// Always stacked, even while there is nothing below.
bool is_stacking_driver(std::string_view disk) {
  return is_dm(disk) || is_md(disk) || starts_with(disk, "bcache") || starts_with(disk, "drbd");
}

}  // namespace

Stacking::Stacking(std::string sys_root, std::vector<std::string> disks)
    : sys_root_(std::move(sys_root)), disks_(disks.begin(), disks.end()) {
  for (const std::string& disk : disks_) {
    const std::string directory = sys_root_ + "/block/" + disk;
    const auto slaves = sysfs::list_directory(directory + "/slaves").value_or(std::vector<std::string>{});
    if (slaves.empty() && !is_stacking_driver(disk)) {
      continue;
    }
    auto& lower = lower_[disk];
    carriers_.insert(slaves.begin(), slaves.end());
    for (const std::string& slave : slaves) {
      std::string below =
          disks_.count(slave) != 0 ? slave : disk_of_path(sysfs::link_target(directory + "/slaves/" + slave));
      if (!below.empty()) {
        lower.push_back(std::move(below));
      }
    }
    if (is_dm(disk)) {
      dm_names_[disk] = sysfs::read_text(directory + "/dm/name");
      if (starts_with(sysfs::read_text(directory + "/dm/uuid"), "mpath-")) {
        multipath_.insert(disk);
      }
    }
  }
}

bool Stacking::is_stacked(const std::string& disk) const { return lower_.count(disk) != 0; }

std::set<std::string> Stacking::disks_under(const std::string& disk) const {
  std::set<std::string> visited;
  std::set<std::string> found;
  add_disks_under(disk, visited, found);
  return found;
}

void Stacking::add_disks_under(const std::string& disk, std::set<std::string>& visited,
                               std::set<std::string>& found) const {
  if (!visited.insert(disk).second) {
    return;
  }
  const auto stacked = lower_.find(disk);
  if (stacked == lower_.end()) {
    found.insert(disk);
    return;
  }
  for (const std::string& below : stacked->second) {
    add_disks_under(below, visited, found);
  }
}

std::vector<model::Membership> Stacking::memberships() const {
  std::vector<model::Membership> memberships;
  for (const auto& [array, lower] : lower_) {
    const auto name = dm_names_.find(array);
    for (const std::string& disk : disks_under(array)) {
      memberships.push_back({array, disk, is_md(array) ? "md" : (is_dm(array) ? "dm" : "other"),
                             name == dm_names_.end() ? std::string() : name->second, multipath_.count(array) != 0});
    }
  }
  return memberships;
}

std::vector<model::Volume> Stacking::volumes() const {
  std::vector<model::Volume> volumes;
  const std::string all = sys_root_ + "/dev/block";
  for (const std::string& number : sysfs::list_directory(all).value_or(std::vector<std::string>{})) {
    const std::string path = sysfs::link_target(all + "/" + number);
    const std::string name(sysfs::base_name(path));
    const auto parts = sysfs::parse_device_number(number);
    std::string disk = disk_of_path(path);
    if (parts && !disk.empty()) {
      volumes.push_back({name, parts->first, parts->second, std::move(disk), carriers_.count(name) != 0});
    }
  }
  std::sort(volumes.begin(), volumes.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return volumes;
}

std::string Stacking::disk_of_path(std::string_view path) const {
  // .../nvme0n1 is a disk; .../nvme0n1/nvme0n1p2 a partition, which lies in its disk's directory.
  for (int level = 0; level < 2 && !path.empty(); ++level) {
    std::string name(sysfs::base_name(path));
    if (disks_.count(name) != 0) {
      return name;
    }
    path = path.substr(0, path.size() - std::min(path.size(), name.size() + 1));
  }
  return {};
}

std::string Stacking::disk_of_node(const std::string& node) const {
  constexpr std::string_view kMapper = "mapper/";
  if (starts_with(node, kMapper)) {
    const std::string name = node.substr(kMapper.size());
    const auto found =
        std::find_if(dm_names_.begin(), dm_names_.end(), [&](const auto& entry) { return entry.second == name; });
    return found == dm_names_.end() ? std::string() : found->first;
  }
  const std::string name = sysfs::to_sysfs_name(node);
  return disks_.count(name) != 0 ? name : disk_of_path(sysfs::link_target(sys_root_ + "/class/block/" + name));
}

}  // namespace ssdpulse::inventory
