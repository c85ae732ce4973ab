// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/utilisation.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ssdpulse::stages {

Findings Utilisation::observe(const Tick& tick) {
  std::vector<std::optional<model::Utilisation>> values(tick.devices.size());
  devices_.observe(tick, [&](std::size_t number, const DeviceTick& device, Device& known) {
    if (std::exchange(known.kernel_account, device.kernel_account) != device.kernel_account) {
      known = {device.kernel_account};
    }
    if (device.account) {
      const std::uint64_t busy_ms = device.account->kernel_after.busy_ms;
      model::Utilisation now{static_cast<double>(busy_ms) / 1e3, {}};
      const double seconds = known.at ? std::chrono::duration<double>(tick.at - *known.at).count() : 0;
      if (seconds > 0 && busy_ms >= known.busy_ms) {
        now.busy_ratio = std::min(1.0, static_cast<double>(busy_ms - known.busy_ms) / 1e3 / seconds);
      }
      known.at = tick.at;
      known.busy_ms = busy_ms;
      known.last = now;
    }
    values[number] = known.last;
  });
  return {[values = std::move(values)](model::Snapshot& snapshot) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      snapshot.devices[i].utilisation = values[i];
    }
  }};
}

}  // namespace ssdpulse::stages
