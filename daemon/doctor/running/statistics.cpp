// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"
#include "daemon/doctor/findings_of_both.h"

namespace ssdpulse::doctor {
namespace {

Findings statistics(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    const std::string& name = entry.device->name;
    if (entry.device->iostats || entry.unseen) {
      continue;
    }
    found.push_back(not_stamped(name));
  }
  return found;
}

}  // namespace

const RunningCheck kStatistics{"iostats", "the kernel stamps the requests of every device", statistics};

}  // namespace ssdpulse::doctor
