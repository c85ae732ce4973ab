// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings devices(const model::Snapshot& snapshot) {
  if (!snapshot.devices.empty()) {
    return {};
  }
  return {finding(model::Verdict::danger, "", "no device is measured",
                  "devices.include and devices.exclude leave none, or the host has none",
                  "ssdpulse devices  # shows each disk and why; change devices in the configuration and reload")};
}

}  // namespace

const RunningCheck kDevices{"devices", "devices are measured", devices};

}  // namespace ssdpulse::doctor
