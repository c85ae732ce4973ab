// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kFasterThanAnyHead = 0.001;  // seconds
constexpr double kReads = 10'000;             // fewer may all have come from a cache

Finding rotational(const Facts& facts, const DiskSettings& disk) {
  if (!disk.files.number("queue/rotational")) {
    return unknown("whether it spins", "queue/rotational is not readable");
  }
  if (!disk.device.rotational) {
    return ok("the kernel takes it for an SSD");
  }
  const Measurements::Labels reads{{"device", disk.device.name}, {"operation", "read"}};
  const auto seconds = mean(facts, "ssdpulse_io_device_latency_seconds", reads);
  const auto count = facts.measured.sum("ssdpulse_io_device_latency_seconds_count", reads);
  if (seconds.value_or(1) >= kFasterThanAnyHead) {
    Finding finding =
        info("the kernel takes it for a spinning disk", "it is as slow as one, or too little was read to tell");
    if (seconds) {
      finding.evidence["mean_read_seconds"] = *seconds;
    }
    return finding;
  }
  Finding bad = info("the kernel takes it for a spinning disk",
                     "reads are faster than any; writeback, swap and file "
                     "systems choose what suits spinning disks");
  change_file(bad, disk, "queue/rotational", "0");
  bad.risk = "none that is known";
  return weigh(facts, std::move(bad),
               {{"reads_per_mean_read_second", 1 / *seconds, 1 / kFasterThanAnyHead}, {"reads", count, kReads}});
}

}  // namespace

const Rule kQ7{.id = "Q7",
               .title = "SSDs that the kernel takes for spinning disks",
               .limit = "the mean of 10,000 reads is below 1 ms",
               .source = "Documentation/ABI/stable/sysfs-block, rotational",
               .of_disk = rotational};

}  // namespace ssdpulse::audit
