// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kHighAmplification = 2;  // of the lower bound of the ratio
constexpr double kSpare = 0.07;           // of the drive that is in no partition

Finding overprovisioning(const Facts& facts, const DiskSettings& disk) {
  if (disk.controller_name.empty()) {
    return not_applicable("write amplification is known only for NVMe drives");
  }
  const auto lower = write_amplification_at_least(facts, disk);
  if (!lower) {
    return unknown("write amplification", "it is not known for a whole day yet, or the drive does not report it");
  }
  std::uint64_t used = 0;
  for (const model::PartitionSettings& partition : disk.partitions) {
    used += partition.size_bytes;
  }
  const double spare = disk.partitions.empty() || disk.device.size_bytes == 0
                           ? 0
                           : 1 - static_cast<double>(used) / static_cast<double>(disk.device.size_bytes);
  Finding bad = info(fmt::format("write amplification is at least {:.2f}, and {:.0f} % of the drive is in no partition",
                                 *lower, 100 * spare),
                     "free space that the drive knows of makes its garbage collection cheaper");
  bad.evidence = {{"write_amplification_lower_ratio", *lower}, {"unpartitioned_ratio", spare}};
  if (*lower < kHighAmplification) {
    return ok(bad.found);
  }
  if (spare >= kSpare) {
    bad.why += "; anything beyond that is due to the load";
    return bad;
  }
  bad.change = "leave 7 to 28 % of the drive in no partition, and trim it once with blkdiscard";
  bad.undo = "grow the last partition again";
  bad.risk = "that capacity is lost; shrinking needs a backup";
  const auto host = bytes_per_day(facts, disk.device.name, model::Operation::write);
  const DeviceEvidence* past = evidence_of(facts, disk.device.name);
  if (past != nullptr && past->media_bytes_per_day) {
    bad.evidence["media_bytes_per_day"] = *past->media_bytes_per_day;
  }
  return weigh(facts, std::move(bad),
               {{"write_amplification_lower_ratio", lower, kHighAmplification},
                {"wear_bytes_per_day", host ? std::optional(*host * (*lower - 1)) : std::nullopt, kWearLimit}});
}

}  // namespace

const Rule kN4{
    .id = "N4",
    .title = "Over-provisioning",
    .limit = "the lower bound of write amplification is at least 2, at a cost of 10 GB a day, with less than 7 % spare",
    .source = "RHEL 7, SSD guidelines; NetApp E-series, optimization capacity",
    .by_history = true,
    .of_disk = overprovisioning};

}  // namespace ssdpulse::audit
