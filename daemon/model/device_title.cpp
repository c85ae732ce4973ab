// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/device_title.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "daemon/base/outside_text.h"

namespace ssdpulse::model {
namespace {

constexpr std::size_t kLongestMountpoint = 48;
constexpr std::size_t kLongestName = 40;  // of a volume or a disk; the kernel's names have at most 31 characters

/// Printable, and without its middle if it is too long: both ends of a path tell more than its middle.
std::string bounded(const util::OutsideText& text, std::size_t most) {
  constexpr std::string_view kGap = "...";
  const std::string clean = util::for_log(text, std::string::npos);
  if (clean.size() <= most) {
    return clean;
  }
  const std::size_t head = most / 3;
  const std::size_t tail = most - head - kGap.size();
  return clean.substr(0, head) + std::string(kGap) + clean.substr(clean.size() - tail);
}

/// What people care about comes first: no boot partition, and no mount below another one.
bool comes_first(const Filesystem* one, const Filesystem* other) {
  const auto key = [](const Filesystem* filesystem) {
    const std::string& path = filesystem->mountpoint.raw();
    const bool is_boot = path == "/boot" || path.rfind("/boot/", 0) == 0 || path == "/efi";
    const auto depth = path == "/" ? 0 : std::count(path.begin(), path.end(), '/');
    return std::make_tuple(is_boot, depth, std::string_view(path));
  };
  return key(one) < key(other);
}

std::string and_more(const std::string& first, std::size_t count) {
  return count > 1 ? fmt::format("{} and {} more", first, count - 1) : first;
}

/// As people named the array or volume; nothing if it is none of those above the disk.
util::OutsideText volume_name(const std::string& volume, const std::string& device,
                              const std::vector<Membership>& memberships) {
  for (const Membership& one : memberships) {
    if (one.array == volume && one.device == device) {
      return one.name.empty() ? util::OutsideText(one.array) : one.name;
    }
  }
  return {};
}

/// The volume that all these file systems lie on; empty: they differ, or lie on the disk or its partitions.
util::OutsideText common_volume(const std::vector<const Filesystem*>& mounted, const std::string& device,
                                const std::vector<Membership>& memberships) {
  util::OutsideText common;
  for (const Filesystem* filesystem : mounted) {
    util::OutsideText name;
    for (const std::string& volume : filesystem->volumes) {
      name = name.empty() ? volume_name(volume, device, memberships) : name;
    }
    if (name.empty() || (!common.empty() && name != common)) {
      return {};
    }
    common = name;
  }
  return common;
}

}  // namespace

DeviceTitle device_title(const std::string& device, const std::vector<Filesystem>& filesystems,
                         const std::vector<Membership>& memberships) {
  const std::string disk = bounded(device, kLongestName);
  std::vector<const Filesystem*> mounted;
  for (const Filesystem& filesystem : filesystems) {
    if (filesystem.device == device && !util::for_log(filesystem.mountpoint).empty()) {
      mounted.push_back(&filesystem);
    }
  }
  if (!mounted.empty()) {
    const Filesystem* first = *std::min_element(mounted.begin(), mounted.end(), comes_first);
    const std::string use = and_more(bounded(first->mountpoint, kLongestMountpoint), mounted.size());
    const std::string volume = bounded(common_volume(mounted, device, memberships), kLongestName);
    return {volume.empty() ? fmt::format("{} ({})", use, disk) : fmt::format("{} ({} on {})", use, volume, disk), use};
  }
  std::vector<util::OutsideText> volumes;
  for (const Membership& one : memberships) {
    if (one.device == device) {
      volumes.push_back(one.name.empty() ? util::OutsideText(one.array) : one.name);
    }
  }
  if (volumes.empty()) {
    return {disk, ""};
  }
  const std::string use =
      and_more(bounded(*std::min_element(volumes.begin(), volumes.end()), kLongestName), volumes.size());
  return {fmt::format("{} on {}", use, disk), use};
}

DeviceTitle device_title(const Snapshot& snapshot, const std::string& device) {
  return device_title(device, snapshot.filesystems, snapshot.memberships);
}

DeviceTitle device_title(const HostSettings& settings, const std::string& device) {
  std::vector<Membership> memberships;
  std::vector<Filesystem> filesystems;
  for (const DiskSettings& array : settings.arrays) {
    const util::OutsideText name = array.files.text("dm/name");
    for (const std::string& disk : array.disks) {
      memberships.push_back({array.device.name, disk, "", name});
    }
    if (array.device.name == device && !name.empty()) {
      memberships.push_back({device, device, "", name});
    }
  }
  for (const MountSettings& mount : settings.mounts) {
    const auto is_on_array = std::find(mount.volumes.begin(), mount.volumes.end(), device) != mount.volumes.end();
    if (is_on_array || std::find(mount.disks.begin(), mount.disks.end(), device) != mount.disks.end()) {
      filesystems.push_back({device, mount.mountpoint, mount.fstype, false, mount.volumes});
    }
  }
  return device_title(device, filesystems, memberships);
}

}  // namespace ssdpulse::model
