// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

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

}  // namespace

const RunningCheck kHealth{"health", "health and wear of every device are read", health};

}  // namespace ssdpulse::doctor
