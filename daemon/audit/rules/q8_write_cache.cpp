// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding write_cache(const Facts&, const DiskSettings& disk) {
  const util::OutsideText kernel = disk.files.text("queue/write_cache");
  if (kernel.empty()) {
    return unknown("the write cache", "queue/write_cache is not readable");
  }
  // What the drive reports about itself, where the kernel shows it: SCSI and virtio.
  const util::OutsideText drive =
      disk.files.has("scsi_cache_type") ? disk.files.text("scsi_cache_type") : disk.files.text("cache_type");
  const bool volatile_cache = drive.starts_with("write back");
  if (kernel == "write through" && volatile_cache) {
    Finding finding = danger("the kernel sends no flushes to a drive with a volatile cache",
                             "synced data is lost when the power fails");
    change_file(finding, disk, "queue/write_cache", "write back");
    finding.risk = "each sync waits for the drive, as it must";
    return finding;
  }
  return ok(fmt::format("the kernel's view is {}{}", util::for_json(kernel),
                        drive.empty() ? "" : ", the drive's is " + util::for_json(drive)));
}

}  // namespace

const Rule kQ8{.id = "Q8",
               .title = "Flushes that the kernel leaves out",
               .limit = "danger wherever the two views differ",
               .source = "Documentation/ABI/stable/sysfs-block, write_cache",
               .of_disk = write_cache};

}  // namespace ssdpulse::audit
