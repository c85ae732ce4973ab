// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"
#include "daemon/model/device_identity.h"

namespace ssdpulse::doctor {
namespace {

Findings shared_identities(const model::Snapshot& snapshot) {
  std::vector<const model::Device*> devices;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    devices.push_back(entry.device.get());
  }
  Findings found;
  for (const model::IdentityClash& clash : model::reported_clashes(devices, snapshot.memberships)) {
    auto one = finding(model::Verdict::info, "", model::clash_text(clash),
                       "nothing that they report would tell them apart after a reboot");
    one.evidence = {{"devices", static_cast<double>(clash.devices.size())}};
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace

const RunningCheck kSharedIdentities{"identities", "each device can be distinguished from all others",
                                     shared_identities};

}  // namespace ssdpulse::doctor
