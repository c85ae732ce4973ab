// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding completion_cpu(const Facts&, const DiskSettings& disk) {
  const auto affinity = disk.files.number("queue/rq_affinity");
  if (!affinity) {
    return unknown("rq_affinity", "queue/rq_affinity is not readable");
  }
  if (*affinity != 0) {
    return ok(fmt::format("rq_affinity is {}", *affinity));
  }
  Finding bad = info("completions run wherever the interrupt is",
                     "caches of the CPU that waits are cold; nothing measured here shows how much that costs");
  change_file(bad, disk, "queue/rq_affinity", "1");
  bad.risk = "an interrupt to another CPU for some completions";
  return bad;
}

}  // namespace

const Rule kQ4{.id = "Q4",
               .title = "CPU that completes an I/O",
               .limit = "never: no measurement shows it",
               .source = "Documentation/ABI/stable/sysfs-block, rq_affinity",
               .of_disk = completion_cpu};

}  // namespace ssdpulse::audit
