// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings devices(const model::Snapshot& snapshot) {
  const bool none = std::all_of(snapshot.devices.begin(), snapshot.devices.end(),
                                [](const auto& entry) { return entry.unseen.has_value(); });
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    if (entry.unseen) {
      auto one = finding(none ? model::Verdict::danger : model::Verdict::info, entry.device->name,
                         "none of its I/O is measured", std::string(model::unseen_text(entry.unseen->has_requests)));
      if (entry.unseen->kernel_ios) {
        one.evidence = {{"kernel_ios", static_cast<double>(*entry.unseen->kernel_ios)}};
      }
      found.push_back(std::move(one));
    }
  }
  if (!snapshot.devices.empty()) {
    return found;
  }
  return {finding(model::Verdict::danger, "", "no device is measured",
                  "devices.include and devices.exclude leave none, or the host has none",
                  "ssdpulse devices  # shows each disk and why; change devices in the configuration and reload")};
}

}  // namespace

const RunningCheck kDevices{"devices", "devices are measured", devices};

}  // namespace ssdpulse::doctor
