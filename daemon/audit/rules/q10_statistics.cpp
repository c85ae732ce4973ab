// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding statistics(const Facts& facts, const DiskSettings& disk) {
  const auto iostats = disk.files.number("queue/iostats");
  if (!iostats) {
    return unknown("statistics", "queue/iostats is not readable");
  }
  if (*iostats != 0) {
    return ok("the kernel keeps statistics");
  }
  if (is_unseen(facts, disk)) {
    return not_applicable("none of its requests is seen, with statistics or without");
  }
  Finding bad = info("the kernel keeps no statistics", "no total latency, no spikes, and nothing in iostat");
  change_file(bad, disk, "queue/iostats", "1");
  bad.risk = "the kernel reads its clock twice for each I/O, as it does by default";
  const auto blind = facts.measured.device(disk.device.name).unstamped_ios;
  bad.evidence["unstamped_ios"] = blind.value_or(0);
  if (blind.value_or(0) > 0) {  // nothing to weigh: none of them was measured
    bad.verdict = Verdict::advise;
  } else {
    bad.evidence.erase("unstamped_ios");
  }
  return bad;
}

}  // namespace

const Rule kQ10{.id = "Q10",
                .title = "The kernel's statistics",
                .limit = "one I/O could not be measured",
                .source = "Documentation/ABI/stable/sysfs-block, iostats",
                .days = 0,
                .of_disk = statistics};

}  // namespace ssdpulse::audit
