// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings lost_before_devices(const model::Snapshot& snapshot) {
  Findings found;
  if (const auto& left_out = snapshot.devices_left_out; !left_out.empty()) {
    constexpr std::size_t kNamed = 8;
    const auto first = std::span(left_out).first(std::min(kNamed, left_out.size()));
    std::string named = fmt::format("{}", fmt::join(first, ", "));
    named += left_out.size() > kNamed ? ", ..." : "";
    auto one =
        finding(model::Verdict::advise, "",
                fmt::format("{} of {} devices are not measured: {}", left_out.size(), snapshot.devices.size(), named),
                "the tables in the kernel have room for the devices that were there when the daemon started, and "
                "a few more",
                "restart the daemon, or exclude some (devices.exclude)");
    one.evidence = {{"devices_left_out", static_cast<double>(left_out.size())}};
    found.push_back(std::move(one));
  }
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
