// SPDX-License-Identifier: Apache-2.0
// DiskStatsFile: what the kernel itself counts for a disk: /sys/block/X/stat and /sys/block/X/inflight
// (Documentation/block/stat.rst, Documentation/ABI/stable/sysfs-block). Our counts are compared with it. AllDiskStats:
// the same of all disks at once, from /proc/diskstats.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/result.h"
#include "daemon/host/inventory.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::host {

/// 11 fields; since Linux 4.18 also discards (15), since 5.5 also flushes (17); further ones are ignored.
util::Result<model::DiskStats> parse_disk_stats(std::string_view text);

using AllDiskStats = std::map<std::string, model::DiskStats>;  // by the name of the disk or partition
/// A line that is not understood is left out.
AllDiskStats parse_all_disk_stats(std::string_view text);

/// Reads them once; `disk_name` may be that of a hidden multipath path.
util::Result<model::DiskStats> read_disk_stats(const InventoryRoots& roots, const std::string& disk_name);

/// Reads and writes in flight.
util::Result<model::KernelInFlight> parse_in_flight(std::string_view text);

/// For reading every second: keeps the files open. Belongs to one incarnation of the disk: once that is gone, every
/// read fails, even if a new disk has taken the name.
class DiskStatsFile {
 public:
  static util::Result<DiskStatsFile> open(const InventoryRoots& roots, const std::string& disk_name);

  [[nodiscard]] util::Result<model::DiskStats> read() const;
  [[nodiscard]] util::Result<model::KernelInFlight> read_in_flight() const;

 private:
  struct Attribute {
    util::UniqueFd fd;
    std::string path;
  };
  static util::Result<Attribute> open_attribute(const std::string& path);
  static util::Result<std::string> read_attribute(const Attribute& attribute);
  DiskStatsFile(Attribute stat, Attribute in_flight);

  Attribute stat_;
  Attribute in_flight_;
};

}  // namespace ssdpulse::host
