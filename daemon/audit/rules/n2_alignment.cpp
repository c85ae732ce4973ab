// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kMisalignedShare = 0.05;  // of the bytes written

Finding alignment(const Facts& facts, const DiskSettings& disk) {
  // NVMe's preferred write granularity appears as minimum_io_size; its alignment appears at most as the physical block.
  const std::uint64_t preferred = std::max<std::uint64_t>({kFlashPage, disk.device.write_granularity_bytes});
  if (disk.partitions.empty()) {
    return ok("it has no partitions");
  }
  std::string crooked;
  for (const model::PartitionSettings& partition : disk.partitions) {
    if (partition.start_bytes % preferred != 0) {
      crooked += fmt::format("{}{}", crooked.empty() ? "" : " ", partition.name);
    }
  }
  if (crooked.empty()) {
    return ok(fmt::format("all partitions begin at multiples of {} KiB", preferred / 1024));
  }
  Finding bad = info(fmt::format("partitions that do not begin at a multiple of {} KiB", preferred / 1024),
                     crooked + ": each write touches a page more than it needs");
  bad.change = fmt::format("repartition: sgdisk --set-alignment={} aligns new partitions; move the data",
                           std::max<std::uint64_t>(2048, preferred / 512));
  bad.undo = "the former partition table and data, from a backup";
  bad.risk = "the partitions are recreated: everything on them is lost";
  const auto misaligned = misaligned_bytes_of(facts, disk, preferred);
  const auto written = facts.measured.device(disk.device.name).operation(Operation::write).bytes;
  return weigh(facts, std::move(bad),
               {{"misaligned_share", ratio(misaligned, written), kMisalignedShare},
                {"wear_bytes_per_day", misaligned_bytes_per_day(facts, disk, preferred), kWearLimit}});
}

}  // namespace

const Rule kN2{
    .id = "N2",
    .title = "Alignment of partitions",
    .limit = "5 % of the bytes written, and 10 GB a day, are misaligned",
    .source = "NVM Express, Improving performance through I/O size and alignment; Ceph hardware recommendations",
    .of_disk = alignment};

}  // namespace ssdpulse::audit
