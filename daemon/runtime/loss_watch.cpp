// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/loss_watch.h"

#include <utility>

namespace ssdpulse::runtime {

void LossWatch::observe(const model::Snapshot& snapshot, analysis::RecentLosses::Time at) {
  std::map<std::string, analysis::RecentLosses> before = std::exchange(devices_, {});
  for (const model::DeviceSnapshot& device : snapshot.devices) {
    const std::string& name = device.device->name;
    analysis::RecentLosses& losses = devices_[name] = before[name];
    const auto share = device.io ? losses.observe(*device.io, at) : std::nullopt;
    if (!share) {
      continue;
    }
    if (const auto suppressed = limiter_.admit(name)) {
      log::warning(
          "I/Os were not measured device={} completion_missed={} stray={} slot_collision={} of={} seconds={:.0f} "
          "runbook=SsdpulseLosingEvents suppressed={}",
          name, share->lost[0], share->lost[1], share->lost[2], share->ios, share->duration.count(), *suppressed);
    }
  }
}

}  // namespace ssdpulse::runtime
