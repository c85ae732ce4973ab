// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding sata(const Facts& facts, const DiskSettings& disk) {
  if (disk.device.transport != "sata") {
    return not_applicable("it is not a SATA drive");
  }
  const auto depth = disk.files.number("device/queue_depth");
  if (!depth) {
    return unknown("its queue", "device/queue_depth is not readable");
  }
  // Without NCQ the controller itself has one tag, and the kernel refuses more (EINVAL).
  const std::uint64_t most = std::min<std::uint64_t>(31, disk.files.number("mq/0/nr_tags").value_or(31));
  if (*depth == 1 && most <= 1) {
    return ok("the controller takes one command at a time");
  }
  if (*depth == 1) {
    Finding bad = info("commands are sent one at a time", "the drive cannot work on several at once");
    change_file(bad, disk, "device/queue_depth", std::to_string(most));
    bad.risk = "the kernel refuses if it knows the drive to be faulty";
    return weigh(
        facts, std::move(bad),
        {{"excess_seconds_per_day",
          excess_per_day(facts, disk.device.name, {SpikeCause::queue, SpikeCause::saturation}), kExcessLimit}});
  }
  const util::OutsideText power = disk.files.text("link_power_management_policy");
  if (!power.empty() && power != "max_performance") {
    return info("the link may sleep: " + util::for_json(power), "it wakes up at the beginning of each burst of I/Os");
  }
  return ok(fmt::format("{} commands at once", *depth));
}

}  // namespace

const Rule kN13{.id = "N13",
                .title = "Queue and link of SATA drives",
                .limit = "queueing or saturation causes 60 s of waiting a day",
                .source = "drivers/ata/libata-core.c",
                .by_history = true,
                .of_disk = sata};

}  // namespace ssdpulse::audit
