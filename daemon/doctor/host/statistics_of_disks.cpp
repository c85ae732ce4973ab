// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"
#include "daemon/doctor/findings_of_both.h"

namespace ssdpulse::doctor {
namespace {

Findings statistics_of_disks(const Start& start) {
  Findings found;
  for (const model::Device& device : start.devices) {
    if (device.iostats || !device.has_requests) {
      continue;
    }
    found.push_back(not_stamped(device.name));
  }
  return found;
}

}  // namespace

const HostCheck kStatisticsOfDisks{"iostats", "the kernel stamps the requests of every disk", statistics_of_disks};

}  // namespace ssdpulse::doctor
