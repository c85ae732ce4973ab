// SPDX-License-Identifier: Apache-2.0
// Which file systems are mounted, and on which disks, in the daemon's own mount namespace.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/device.h"
#include "daemon/sources/inventory/stacking.h"

namespace ssdpulse::inventory {

/// One line of mountinfo (proc(5)), with its octal escapes decoded.
struct Mount {
  std::string device_number;  // MAJOR:MINOR of the super block; MAJOR is 0 for anonymous ones (btrfs, tmpfs, ...)
  std::string root;           // of the mount within its file system; "/" except for bind mounts and subvolumes
  std::string mountpoint;
  std::string fstype;
  std::string source;
  bool discard = false;
  std::set<std::string> options = {};  // of the mount and of the super block
};

/// Lines that are not mounts are left out. One mount for each super block: the first that shows its root, else the
/// first.
std::vector<Mount> parse_mountinfo(std::string_view text);

/// All disks under each mount, whatever their coverage; mounts without a disk are left out. Sorted.
std::vector<model::Filesystem> filesystems_of(const std::vector<Mount>& mounts, const Stacking& stacking,
                                              const std::string& sys_root);

}  // namespace ssdpulse::inventory
