// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings lost_before_devices(const model::Snapshot& snapshot) {
  Findings found;
  for (std::size_t i = 0; i < model::kHostLosses; ++i) {
    if (snapshot.losses[i] == 0 || i == model::index(model::HostLoss::freeze_events)) {
      continue;
    }
    const bool passing = i == model::index(model::HostLoss::device_pending);
    auto one = finding(passing ? model::Verdict::info : model::Verdict::advise, "",
                       fmt::format("I/Os of devices without a place: {}", model::kHostLossNames[i]),
                       passing ? "a new device's first I/Os came before the daemon knew it"
                               : "more devices appeared than there was room for when the daemon started",
                       passing ? "" : "restart the daemon");
    one.evidence = {{"lost_ios", static_cast<double>(snapshot.losses[i])}};
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace

const RunningCheck kLostBeforeDevices{"device-places", "every device has a place", lost_before_devices};

}  // namespace ssdpulse::doctor
