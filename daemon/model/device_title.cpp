// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/device_title.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

namespace ssdpulse::model {
namespace {

constexpr std::size_t kMaxMountpointBytes = 48;
constexpr std::size_t kMaxShownBytes = 40;  // of a volume or a disk; the kernel's names have at most 31 characters

/// Printable, and without its middle if it is too long: both ends of a path say more than its middle.
std::string bounded(const util::OutsideText& text, std::size_t max_bytes) {
  constexpr std::string_view kGap = "...";
  const std::string clean = util::for_log(text, std::string::npos);
  if (clean.size() <= max_bytes) {
    return clean;
  }
  const std::size_t head = max_bytes / 3;
  const std::size_t tail = max_bytes - head - kGap.size();
  return clean.substr(0, head) + std::string(kGap) + clean.substr(clean.size() - tail);
}

/// What users care about comes first: no boot partition, and no mount below another mount.
bool comes_first(const Filesystem* a, const Filesystem* b) {
  const auto key = [](const Filesystem* filesystem) {
    const std::string& path = filesystem->mountpoint.raw();
    const bool is_boot = path == "/boot" || path.rfind("/boot/", 0) == 0 || path == "/efi";
    const auto depth = path == "/" ? 0 : std::count(path.begin(), path.end(), '/');
    return std::make_tuple(is_boot, depth, std::string_view(path));
  };
  return key(a) < key(b);
}

std::string and_more(const std::string& first, std::size_t count) {
  return count > 1 ? fmt::format("{} and {} more", first, count - 1) : first;
}

/// As its users named the array or volume.
util::OutsideText name_of_array(const Membership& membership) {
  return membership.name.empty() ? util::OutsideText(membership.array) : membership.name;
}

/// Empty if the volume is not one of those above the disk.
util::OutsideText volume_name(const std::string& volume, const std::string& device,
                              const std::vector<Membership>& memberships) {
  const auto found = std::find_if(memberships.begin(), memberships.end(), [&](const Membership& membership) {
    return membership.array == volume && membership.device == device;
  });
  return found == memberships.end() ? util::OutsideText() : name_of_array(*found);
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
  const std::string disk = bounded(device, kMaxShownBytes);
  std::vector<const Filesystem*> mounted;
  for (const Filesystem& filesystem : filesystems) {
    if (filesystem.device == device && !util::for_log(filesystem.mountpoint).empty()) {
      mounted.push_back(&filesystem);
    }
  }
  if (!mounted.empty()) {
    const Filesystem* first = *std::min_element(mounted.begin(), mounted.end(), comes_first);
    const std::string use = and_more(bounded(first->mountpoint, kMaxMountpointBytes), mounted.size());
    const std::string volume = bounded(common_volume(mounted, device, memberships), kMaxShownBytes);
    return {volume.empty() ? fmt::format("{} ({})", use, disk) : fmt::format("{} ({} on {})", use, volume, disk), use};
  }
  std::vector<util::OutsideText> volumes;
  for (const Membership& membership : memberships) {
    if (membership.device == device) {
      volumes.push_back(name_of_array(membership));
    }
  }
  if (volumes.empty()) {
    return {disk, ""};
  }
  const std::string use =
      and_more(bounded(*std::min_element(volumes.begin(), volumes.end()), kMaxShownBytes), volumes.size());
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
