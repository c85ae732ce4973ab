// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/losses.h"

namespace ssdpulse::stages {

using log::field;

Findings Losses::observe(const Tick& tick) {
  Findings findings;
  devices_.observe(tick, [&](std::size_t /*number*/, const DeviceTick& device, analysis::RecentLosses& losses) {
    const std::string& name = device.block.device->name;
    const auto share = device.block.io ? losses.observe(*device.block.io, tick.at) : std::nullopt;
    const auto suppressed = share ? limiter_.admit(name, tick.at) : std::nullopt;
    if (suppressed) {
      findings.effects.lines.push_back(
          log::line(log::Level::warning, "I/Os were not measured", field("device", name),
                    field("completion_missed", share->lost[0]), field("stray", share->lost[1]),
                    field("slot_collision", share->lost[2]), field("of", share->ios),
                    field("seconds", "{:.0f}", share->duration.count()), field("runbook", "SsdpulseLosingEvents"),
                    field("suppressed", *suppressed)));
    }
  });
  return findings;
}

}  // namespace ssdpulse::stages
