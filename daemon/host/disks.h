// SPDX-License-Identifier: Apache-2.0
// Stacking, read_device(), attachment_of(): one disk as sysfs shows it, where it is attached, and which disks lie below
// which. Checks only the syntax of attributes; inventory.cpp adds coverage and multipath.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/model/device.h"

namespace ssdpulse::host {

/// Where a disk is attached: the nearest PCI function and, behind it, the port, the SCSI address, the USB port, the
/// target. The same after a reboot, like ID_PATH of udev: numbers that the kernel gives in the order of probing (host3,
/// ata5, nvme1) are replaced by what they stand for, or left out.
/// `directory`: of the disk or, for a multipath head, of one of its hidden paths. "pci-0000:00:1f.2 ata-3 scsi-0:0:0";
/// empty if it is attached to nothing.
util::OutsideText attachment_of(const std::string& sys_root, const std::string& directory);

/// Queue attributes of the disk in `directory` (hidden paths too). `disk_name` in sysfs spelling.
model::Path read_path(const std::string& directory, const std::string& disk_name);

/// Everything except coverage and paths. Nothing if the disk is hidden (no device number), or vanished meanwhile.
/// `known_serial`, if there is one, is used for a virtio disk instead of asking the disk.
std::optional<model::Device> read_device(const std::string& directory, const std::string& disk_name,
                                         const std::optional<util::OutsideText>& known_serial);

/// queue/iostats: whether the kernel keeps the disk's statistics.
bool keeps_iostats(const std::string& directory);

/// Follows the slaves of md, dm and the like down to the disks that carry the data, and
/// maps partitions to their disk. Built once per pass over sysfs.
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

  /// The names of what lies directly below `disk`: disks and partitions, sorted; none if it is not stacked.
  [[nodiscard]] const std::vector<std::string>& directly_below(const std::string& disk) const;

  /// What device-mapper says of a disk of its own.
  struct Mapped {
    std::string name;
    std::string uuid;  // whoever made it chose it: LVM, cryptsetup, multipathd, ...
  };
  /// Null: it is not of device-mapper.
  [[nodiscard]] const Mapped* mapped(const std::string& disk) const;

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
  std::map<std::string, std::vector<std::string>> lower_;   // of each stacked disk: the disks directly below it
  std::map<std::string, std::vector<std::string>> slaves_;  // likewise, and partitions as such
  std::set<std::string> carriers_;                          // disks and partitions directly below a stacked disk
  std::map<std::string, Mapped> mapped_;                    // by disk
};

}  // namespace ssdpulse::host
