// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr std::uint64_t kOfSpinningDisks = 75000;  // us, the kernel's default for them

Finding writeback_throttling(const Facts& facts, const DiskSettings& disk) {
  const auto target = disk.files.number("queue/wbt_lat_usec");
  if (!target) {
    return not_applicable("the kernel does not throttle writeback on this disk");
  }
  if (*target != kOfSpinningDisks || disk.device.rotational) {
    return ok(*target == 0 ? "writeback is not throttled" : fmt::format("writeback may delay reads by {} us", *target));
  }
  Finding bad = info("writeback is throttled as on a spinning disk",
                     "reads may wait 75 ms for writeback before it gives way; on SSDs the kernel's target is 2 ms");
  change_file(bad, disk, "queue/wbt_lat_usec", "-1");
  bad.risk = "writers wait earlier";
  return weigh(facts, std::move(bad),
               {{"excess_seconds_per_day",
                 excess_per_day(facts, disk.device.name, {SpikeCause::queue, SpikeCause::saturation}), kExcessLimit}});
}

}  // namespace

const Rule kQ6{.id = "Q6",
               .title = "Target of writeback throttling",
               .limit = "queueing or saturation causes 60 s of waiting a day",
               .source = "block/blk-wbt.c; Documentation/ABI/stable/sysfs-block, wbt_lat_usec",
               .by_history = true,
               .of_disk = writeback_throttling};

}  // namespace ssdpulse::audit
