// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding power_states(const Facts& facts, const DiskSettings& disk) {
  if (disk.controller_name.empty()) {
    return not_applicable("it is not an NVMe drive");
  }
  const auto tolerance = disk.controller.text("power/pm_qos_latency_tolerance_us");
  const auto most = facts.settings.files.number("sys/module/nvme_core/parameters/default_ps_max_latency_us");
  // The file exists while the kernel uses the drive's power states, and not if the drive has none.
  if (tolerance.empty()) {
    return disk.controller.has("state") ? not_applicable("the kernel does not put it to sleep")
                                        : unknown("whether it may sleep", "nothing about its controller is readable");
  }
  if (tolerance == "0") {
    return ok("the drive is kept awake");
  }
  const std::string allowed = tolerance == "auto" ? (most ? std::to_string(*most) : "unknown") : tolerance;
  Finding finding =
      info("the drive may sleep between I/Os",
           "waking up may take " + allowed + " us; nothing measured here tells the first I/O after a pause");
  finding.change = fmt::format("echo 0 > /sys/class/nvme/{}/power/pm_qos_latency_tolerance_us", disk.controller_name);
  finding.persistent = "nvme_core.default_ps_max_latency_us=0 on the kernel's command line";
  if (const auto before = shell_word(tolerance)) {
    finding.undo =
        fmt::format("echo {} > /sys/class/nvme/{}/power/pm_qos_latency_tolerance_us", *before, disk.controller_name);
  }
  finding.risk = "power and heat";
  return finding;
}

}  // namespace

const Rule kN5{.id = "N5",
               .title = "Sleep of NVMe drives (APST)",
               .limit = "never: the first I/O after a pause cannot be told apart",
               .source = "drivers/nvme/host/core.c, nvme_configure_apst",
               .of_disk = power_states};

}  // namespace ssdpulse::audit
