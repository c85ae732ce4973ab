// SPDX-License-Identifier: Apache-2.0
// What do the drives tell: log pages, health, write amplification?
#include <fmt/format.h>

#include "daemon/doctor/check.h"

namespace ssdpulse::doctor {
namespace {

Findings log_pages(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    for (const auto& [page, reason] : drive.polling.refused_pages) {
      found.push_back(finding(model::Verdict::info, drive.identity->controller,
                              fmt::format("log page {} is not read", page), reason));
    }
  }
  return found;
}

Findings write_amplification(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    const auto& waf = drive.write_amplification;
    if (waf.source.empty()) {
      found.push_back(finding(model::Verdict::info, drive.identity->controller, "write amplification is not known",
                              waf.reason.empty() ? "the drive has not reported what it has" : waf.reason));
    } else if (!waf.withheld.empty()) {
      found.push_back(finding(model::Verdict::info, drive.identity->controller, "write amplification is in doubt",
                              waf.withheld + ": that ratio is withheld"));
    } else if (waf.ratios.empty()) {
      found.push_back(finding(model::Verdict::info, drive.identity->controller, "write amplification is not known yet",
                              "too little has been written so far to know it within 20 %; its counters are coarse"));
    }
  }
  return found;
}

Findings health(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    if (entry.device->transport != "nvme") {
      found.push_back(finding(model::Verdict::info, entry.device->name, "no health, wear and write amplification",
                              "log pages are read only from NVMe drives"));
    }
  }
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    if (!drive.polling.doubted.empty()) {
      const auto times = [&](const char* kind) {
        const auto count = drive.polling.failures.find(kind);
        return count == drive.polling.failures.end() ? std::uint64_t{0} : count->second;
      };
      found.push_back(finding(model::Verdict::info, drive.identity->controller,
                              "some of its log pages were not accepted",
                              fmt::format("the last one: {}; impossible: {}, unconfirmed: {}", drive.polling.doubted,
                                          times("impossible"), times("unconfirmed")),
                              "update its firmware if this goes on"));
    }
  }
  return found;
}

// The drive's p99 near log reads over that of the rest. The poller itself backs off only above 2 (drives/back_off.cpp).
constexpr double kMaxReadEffect = 1.2;

Findings log_reads(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    if (drive.polling.read_effect_ratio.value_or(0) > kMaxReadEffect) {
      auto one =
          finding(model::Verdict::info, drive.identity->controller, "latency includes the cost of reading log pages",
                  "this drive's reads and writes take longer while its log pages are read",
                  "raise nvme.poll_interval in the configuration and reload");
      one.evidence = {{"p99_during_log_reads_ratio", *drive.polling.read_effect_ratio},
                      {"interval_seconds", drive.polling.interval_seconds}};
      found.push_back(std::move(one));
    }
  }
  return found;
}

constexpr RunningCheck kDriveChecks[] = {
    {"log-pages", "no drive refuses a log page", log_pages},
    {"write-amplification", "write amplification of every NVMe drive is known", write_amplification},
    {"health", "health and wear of every device are read", health},
    {"log-reads", "reading logs slows down no drive", log_reads},
};

}  // namespace

std::span<const RunningCheck> drive_checks() { return kDriveChecks; }

}  // namespace ssdpulse::doctor
