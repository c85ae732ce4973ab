// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding multipath(const Facts& facts, const DiskSettings& disk) {
  if (disk.controller_name.empty() || disk.device.paths.size() < 2) {
    return not_applicable("it has one path");
  }
  const auto failovers =
      facts.measured.per_day("ssdpulse_io_requeues_total", {{"device", disk.device.name}, {"reason", "failover"}});
  if (!failovers) {
    return unknown("its paths", "no daemon answers");
  }
  if (*failovers == 0) {
    return ok(fmt::format("{} paths, and none failed", disk.device.paths.size()));
  }
  Finding finding = info(fmt::format("{} paths, and some failed under I/Os", disk.device.paths.size()),
                         "each of them was sent again by another path");
  finding.evidence = {{"failovers_per_day", *failovers}};
  return finding;
}

}  // namespace

const Rule kN14{.id = "N14",
                .title = "Paths of NVMe multipath",
                .limit = "never: which path is the better one is not compared",
                .source = "Documentation/admin-guide/nvme-multipath.rst",
                .of_disk = multipath};

}  // namespace ssdpulse::audit
