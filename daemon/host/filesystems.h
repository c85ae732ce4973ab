// SPDX-License-Identifier: Apache-2.0
// Uses: which file systems are mounted, in the daemon's own mount namespace, what the host swaps to, and on which
// disks.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/host/disks.h"
#include "daemon/host/inventory.h"
#include "daemon/model/device.h"

namespace ssdpulse::host {

/// One line of mountinfo (proc(5)), with its octal escapes decoded.
struct Mount {
  std::string id;
  std::string parent;         // the mount that it is mounted on
  std::string device_number;  // MAJOR:MINOR of the super block; MAJOR is 0 for anonymous ones (btrfs, tmpfs, ...)
  std::string root;           // of the mount within its file system; "/" except for bind mounts and subvolumes
  std::string mountpoint;
  std::string fstype;
  std::string source;
  bool discard = false;
  std::set<std::string> options = {};  // of the mount and of the super block
};

/// All lines that are mounts, in their order.
std::vector<Mount> parse_mountinfo(std::string_view text);

/// One mount for each super block: the first that shows its root, else the first.
std::vector<Mount> one_for_each_filesystem(const std::vector<Mount>& mounts);

/// The mount in which a path without symbolic links is found; null if there is none. Asks no file system, which might
/// not answer.
const Mount* mount_of(std::string_view path, const std::vector<Mount>& mounts);

/// Each file system has series, settings and lines of its own.
inline constexpr std::size_t kMaxFilesystemsOfDisk = 64;
inline constexpr std::size_t kMaxFilesystems = 256;

/// What self/mountinfo and swaps of procfs say.
struct Uses {
  std::vector<model::Filesystem> filesystems;  // for all chosen disks under each mount; sorted
  std::size_t named = 0;                       // file systems, each on one disk or more
  model::UnnamedFilesystems unnamed;           // beyond the limits
  std::vector<model::Swap> swaps;
  std::vector<std::string> warnings;
};

/// Mounts on none of these disks are left out. Of too many, those that were mounted first are named: so new ones take
/// no name away.
Uses read_uses(const Stacking& stacking, const InventoryRoots& roots, const std::set<std::string>& disks);

}  // namespace ssdpulse::host
