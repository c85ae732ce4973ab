// SPDX-License-Identifier: Apache-2.0
// Which disks lie below which: follows the slaves of md, dm and the like down to the disks that carry the data, and
// maps partitions to their disk. Built once per pass over sysfs.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/device.h"

namespace ssdpulse::inventory {

class Stacking {
 public:
  /// `disks` (not hidden) in sysfs spelling.
  Stacking(std::string sys_root, std::vector<std::string> disks);

  /// md, dm, bcache, drbd, or anything that lies on other disks.
  [[nodiscard]] bool is_stacked(const std::string& disk) const;

  /// The disks at the bottom under `disk`; itself if it is not stacked. Sorted.
  [[nodiscard]] std::set<std::string> disks_under(const std::string& disk) const;

  /// One for each stacked disk and each disk at the bottom under it.
  [[nodiscard]] std::vector<model::Membership> memberships() const;

  /// Every disk and partition with a device number. Sorted by name.
  [[nodiscard]] std::vector<model::Volume> volumes() const;

  /// The disk that a sysfs path (a link's target) of a disk or partition leads to; empty if unknown.
  [[nodiscard]] std::string disk_of_path(std::string_view path) const;

  /// The disk of a block device by its /dev name without the "/dev/" (nvme0n1p2, mapper/vg-data); empty if unknown.
  [[nodiscard]] std::string disk_of_node(const std::string& node) const;

 private:
  void add_disks_under(const std::string& disk, std::set<std::string>& visited, std::set<std::string>& found) const;

  std::string sys_root_;
  std::set<std::string> disks_;
  std::map<std::string, std::vector<std::string>> lower_;  // of each stacked disk: the disks directly below it
  std::set<std::string> carriers_;                         // disks and partitions directly below a stacked disk
  std::map<std::string, std::string> dm_names_;            // disk -> dm's own name
  std::set<std::string> multipath_;                        // those of dm_names_ that join paths to one drive
};

}  // namespace ssdpulse::inventory
