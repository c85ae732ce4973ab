// SPDX-License-Identifier: Apache-2.0
// What has the kernel itself counted for a disk? /sys/block/X/stat (Documentation/block/stat.rst): the independent
// witness against which our counts are held.
#pragma once

#include <string>
#include <string_view>

#include "daemon/model/device.h"
#include "daemon/sources/inventory/inventory.h"
#include "daemon/util/result.h"
#include "daemon/util/unique_fd.h"

namespace ssdpulse::sources {

/// 11 fields, since Linux 4.18 also discards (15), since 5.5 also flushes (17); later ones are left alone.
util::Result<model::DiskStats> parse_disk_stats(std::string_view text);

/// Once; `disk_name` may be that of a hidden multipath path.
util::Result<model::DiskStats> read_disk_stats(const InventoryRoots& roots, const std::string& disk_name);

/// For reading each second: keeps the file open. Belongs to one incarnation of the disk: once that is gone, every
/// read fails, even if a new disk has taken the name.
class DiskStatsFile {
 public:
  static util::Result<DiskStatsFile> open(const InventoryRoots& roots, const std::string& disk_name);

  [[nodiscard]] util::Result<model::DiskStats> read() const;

 private:
  DiskStatsFile(util::UniqueFd fd, std::string path);

  util::UniqueFd fd_;
  std::string path_;
};

}  // namespace ssdpulse::sources
