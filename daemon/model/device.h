// SPDX-License-Identifier: Apache-2.0
// Inventory: the disks of the host, the arrays that they are part of, and the file systems on them. Values only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/base/outside_text.h"
#include "daemon/model/layers.h"

namespace ssdpulse::model {

/// Whether a disk's I/O is measured, and if not, why not.
enum class Coverage : std::uint8_t {
  measured,
  excluded,  // by devices.include / devices.exclude
  stacked,   // md, dm and the like: its I/O is measured on the disks below, once
  empty,     // a disk of zero size, such as an unattached loop device
};
inline constexpr auto kCoverageWords =
    util::names<Coverage>({"measured", "excluded by configuration", "measured on the disks below it", "empty"});

/// A disk that carries requests under its own queue: the device itself, or one hidden path of an
/// NVMe multipath head (nvme0c1n1 of nvme0n1).
struct Path {
  std::string disk_name;  // the kernel's gendisk name, at most 31 characters
  std::uint32_t hardware_queues = 1;
  std::uint32_t queue_depth = 0;  // most tags of one hardware queue that can be in flight: max(nr_requests, nr_tags)
  std::uint64_t diskseq = 0;      // unique for each incarnation of a disk; 0 before Linux 5.15
};

/// One block device as the host's users know it (the multipath head, never the path; the disk, never the partition).
struct Device {
  std::string name;  // nvme0n1, sda
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  Coverage coverage = Coverage::measured;
  std::vector<Path> paths;

  util::OutsideText model;
  util::OutsideText serial;
  util::OutsideText firmware;
  util::OutsideText wwid;
  std::string part;  // see DeviceIdentity, as the next; of NVMe never empty, however many namespaces there are
  util::OutsideText subsystem;
  util::OutsideText attachment;  // the port, slot or target, the same after a reboot; empty: unknown
  std::string transport;         // nvme, sata, scsi, virtio, loop, ...: by the device's own subsystem; empty if unknown
  std::string scheduler;         // the active one
  std::uint64_t size_bytes = 0;
  std::uint32_t logical_block_bytes = 512;
  std::uint32_t physical_block_bytes = 512;
  std::optional<std::uint64_t> largest_request_bytes;  // max_hw_sectors_kb
  std::uint32_t write_granularity_bytes = 512;         // the drive's preferred one, else its physical block; never 0
  std::uint32_t write_streams = 0;  // that writes to the device may name; 0: none, or the kernel lacks streams
  bool rotational = false;
  bool zoned = false;  // zones that the host writes in order, or one that it manages: queue/zoned is not none
  bool write_back_cache = false;
  bool discard = false;             // discard_max_bytes > 0
  bool iostats = true;              // queue/iostats: false hides the device from diskstats
  bool has_requests = true;         // false: its driver takes bios itself, so that nothing of it can be measured
  bool of_virtual_machine = false;  // the host itself is one; see Medium
};

/// `device` (a measured disk) carries part of `array` (an md or dm device), at any depth of stacking.
struct Membership {
  std::string array;
  std::string device;
  std::string kind;        // md, dm, other
  util::OutsideText name;  // dm's own name (queue of LVM, multipath, crypt), else empty
  bool multipath = false;  // device-mapper's: its devices are paths to one drive
};

/// What a file system or an array may lie on: a disk (also a stacked one) or a partition of one.
struct Volume {
  std::string name;  // nvme0n1, nvme0n1p2, dm-0
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::string device;          // the disk that it is or belongs to
  bool carries_array = false;  // an md or dm device lies directly on it
};

/// What mountinfo leaves out about a mounted file system: options that come from its super block's own defaults.
struct UnshownOptions {
  std::set<std::string> in_force =
      {};                            // options that differ from the kernel's defaults; also among the mount's options
  bool complete = true;              // false: there may be others
  std::optional<bool> journal = {};  // of ext3 and ext4: whether it has one
};

/// A mounted file system and the measured disk under it; one entry per disk when it lies on several.
struct Filesystem {
  std::string device;
  util::OutsideText mountpoint;
  util::OutsideText fstype;
  bool discard = false;                   // mounted with online discard
  std::vector<std::string> volumes = {};  // directly below it: all of btrfs or bcachefs; of xfs, logs and realtime last
  std::set<util::OutsideText> options = {};  // of the mount and of the super block
  std::string number = {};                   // MAJOR:MINOR of the super block
  UnshownOptions unshown = {};
};

/// Mounted file systems that are only counted, because there are too many of them.
struct UnnamedFilesystems {
  std::uint64_t in_all = 0;
  std::map<std::string, std::uint64_t> by_device = {};  // one that lies on several counts for each
};

/// A partition, volume or file that the host swaps to.
struct Swap {
  util::OutsideText name;       // as the kernel lists it
  std::set<std::string> disks;  // at the bottom under it, measured or not
  bool known = true;            // false: what it lies on could not be found out
};

/// The counters of /sys/block/X/stat that can be compared with ours (Documentation/block/stat.rst):
/// I/Os completed, and 512-byte sectors. Absent fields (old kernels) are not set.
struct DiskStats {
  std::uint64_t reads = 0;
  std::uint64_t read_sectors = 0;
  std::uint64_t writes = 0;
  std::uint64_t written_sectors = 0;
  std::uint64_t in_flight = 0;
  std::optional<std::uint64_t> discards;
  std::optional<std::uint64_t> discarded_sectors;
  std::optional<std::uint64_t> flushes;
  std::uint64_t busy_ms = 0;  // in which anything was in flight, in steps of a jiffy (io_ticks)
};

/// Everything found in one reading of sysfs and mountinfo.
struct Inventory {
  std::vector<Device> devices;  // sorted by name; all disks, whatever their coverage
  std::vector<Membership> memberships;
  std::vector<Volume> volumes;     // sorted by name; of all disks
  std::vector<Layer> layers = {};  // sorted by name
  std::vector<Filesystem> filesystems;
  UnnamedFilesystems unnamed_filesystems;
  std::vector<Swap> swaps;
  std::vector<std::string> warnings;  // what could not be read
};

}  // namespace ssdpulse::model
