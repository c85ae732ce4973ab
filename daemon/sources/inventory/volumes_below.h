// SPDX-License-Identifier: Apache-2.0
// VolumesBelow: which disks and partitions a mounted file system lies on directly. Follows the kernel's own links: the
// number of its super block, or its members in sysfs. What a user may name as a file system's source never counts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/sources/inventory/filesystems.h"

namespace ssdpulse::inventory {

class VolumesBelow {
 public:
  /// `mounts`: one for each super block; they, `stacking` and `roots` must outlive this.
  VolumesBelow(const std::vector<Mount>& mounts, const Stacking& stacking, const InventoryRoots& roots);

  /// Their links in sysfs, as text; of xfs, with its log and realtime devices. Empty for a file system without a disk.
  /// What should lie on a disk that is not found is a line in `warnings`.
  [[nodiscard]] std::vector<std::string> of(const Mount& mount, std::vector<std::string>& warnings) const;

  /// The link in sysfs of a block device by the path of its node, which may be a link itself; empty if unknown. Where
  /// there is no such node, as in a sandbox, the kernel's name or that of device-mapper must be in the path.
  [[nodiscard]] std::string of_node(const std::string& path) const;

  /// Below sys/fs, of a btrfs or bcachefs; empty if unknown.
  [[nodiscard]] std::string pool_directory(const Mount& mount) const;

 private:
  /// A file system over several devices. Its super block has a made-up number, so sysfs does not say which mount it is.
  struct Pool {
    std::string id;
    std::vector<std::string> members;  // links
  };
  void find_pools(const std::string& fstype, const std::vector<Mount>& mounts);
  [[nodiscard]] std::vector<Pool> read_pools(const std::string& fstype) const;
  [[nodiscard]] std::vector<std::string> source_paths(const Mount& mount) const;
  [[nodiscard]] std::vector<std::string> pool_members(const Mount& mount) const;

  const Stacking& stacking_;
  const InventoryRoots& roots_;
  std::map<std::string, std::vector<Pool>> pools_;   // by type
  std::map<std::string, std::size_t> pool_numbers_;  // in pools_, by the super block's number
};

}  // namespace ssdpulse::inventory
