// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings health(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    if (entry.device->transport != "nvme") {
      found.push_back(finding(model::Verdict::info, entry.device->name, "no health, wear and write amplification",
                              "log pages are read only from NVMe drives"));
    }
  }
  return found;
}

}  // namespace

const RunningCheck kHealth{"health", "health and wear of every device are read", health};

}  // namespace ssdpulse::doctor
