// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

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

}  // namespace

const RunningCheck kWriteAmplification{"write-amplification", "write amplification of every NVMe drive is known",
                                       write_amplification};

}  // namespace ssdpulse::doctor
