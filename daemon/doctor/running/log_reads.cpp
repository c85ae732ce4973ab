// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

// The drive's p99 near log reads over that of the rest. The poller itself backs off only above 2 (drives/back_off.cpp).
constexpr double kHarm = 1.2;

Findings log_reads(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    if (drive.polling.read_effect_ratio.value_or(0) > kHarm) {
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

}  // namespace

const RunningCheck kLogReads{"log-reads", "reading logs slows down no drive", log_reads};

}  // namespace ssdpulse::doctor
