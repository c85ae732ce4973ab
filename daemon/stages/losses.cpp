// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/losses.h"

#include <fmt/format.h>

namespace ssdpulse::stages {

Findings Losses::observe(const Tick& tick) {
  Findings findings;
  devices_.observe(tick, [&](std::size_t /*number*/, const DeviceTick& device, analysis::RecentLosses& losses) {
    const std::string& name = device.block.device->name;
    const auto share = device.block.io ? losses.observe(*device.block.io, tick.at) : std::nullopt;
    const auto suppressed = share ? limiter_.admit(name, tick.at) : std::nullopt;
    if (suppressed) {
      findings.effects.lines.push_back(
          {log::Level::warning,
           fmt::format("I/Os were not measured device={} completion_missed={} stray={} slot_collision={} of={} "
                       "seconds={:.0f} runbook=SsdpulseLosingEvents suppressed={}",
                       name, share->lost[0], share->lost[1], share->lost[2], share->ios, share->duration.count(),
                       *suppressed)});
    }
  });
  return findings;
}

}  // namespace ssdpulse::stages
