// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

// The drive's tail near a log read, against the rest: what the poller itself calls harm.
constexpr double kHarm = 1.2;

Findings log_reads(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    if (drive.polling.read_effect_ratio.value_or(0) > kHarm) {
      auto one = finding(model::Verdict::info, drive.identity->controller, "log pages are read less often",
                         "reading them slows down this drive's reads and writes",
                         "raise nvme.poll_interval in the configuration and reload");
      one.evidence = {{"p99_beside_log_reads_ratio", *drive.polling.read_effect_ratio},
                      {"interval_seconds", drive.polling.interval_seconds}};
      found.push_back(std::move(one));
    }
  }
  return found;
}

}  // namespace

const RunningCheck kLogReads{"log-reads", "reading logs slows down no drive", log_reads};

}  // namespace ssdpulse::doctor
