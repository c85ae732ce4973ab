// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/utilisation.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <vector>

namespace ssdpulse::block {

/// Of a disk with several paths, the kernel may count only these: then their account is used, which is read less often.
std::pair<std::optional<std::uint64_t>, bool> Utilisation::busy_ms_of(const model::Tick& tick,
                                                                      const model::DeviceTick& device) {
  if (tick.host && device.block.device->iostats) {
    const auto own = tick.host->disks_busy_ms.find(device.block.device->name);
    if (own != tick.host->disks_busy_ms.end() && own->second > 0) {
      return {own->second, true};
    }
  }
  return {device.account && device.block.device->iostats ? std::optional(device.account->kernel_after.busy_ms)
                                                         : std::nullopt,
          false};
}

model::Findings Utilisation::observe(const model::Tick& tick) {
  std::vector<std::pair<std::optional<model::Utilisation>, model::DepthHistogram>> values(tick.devices.size());
  devices_.observe(tick, [&](std::size_t number, const model::DeviceTick& device, Device& known) {
    if (std::exchange(known.kernel_account, device.kernel_account) != device.kernel_account) {
      known = {.kernel_account = device.kernel_account, .depth = std::move(known.depth)};
    }
    const auto [busy_ms, each_second] = busy_ms_of(tick, device);
    if (busy_ms) {
      if (std::exchange(known.each_second, each_second) != each_second ||
          (!known.readings.empty() && *busy_ms < known.readings.back().busy_ms)) {
        known.readings.clear();
      }
      known.readings.push_back({tick.at, *busy_ms});
      while (known.readings.size() > 2 && tick.at - known.readings[1].at >= kWindow) {
        known.readings.pop_front();
      }
      known.last = model::Utilisation{static_cast<double>(*busy_ms) / 1e3, {}};
      const Reading& first = known.readings.front();
      if (const double seconds = std::chrono::duration<double>(tick.at - first.at).count(); seconds > 0) {
        known.last->busy_ratio = std::min(1.0, static_cast<double>(*busy_ms - first.busy_ms) / 1e3 / seconds);
      }
    }
    if (device.block.io) {
      const auto& operations = device.block.io->operations;
      const auto in_flight = std::accumulate(operations.begin(), operations.end(), std::int64_t{0},
                                             [](std::int64_t sum, const auto& one) { return sum + one.in_flight; });
      known.depth.add(static_cast<std::uint64_t>(std::max<std::int64_t>(in_flight, 0)));
    }
    values[number] = {known.last, known.depth};
  });
  return {[values = std::move(values)](model::Snapshot& snapshot) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::tie(snapshot.devices[i].utilisation, snapshot.devices[i].depth) = values[i];
    }
  }};
}

}  // namespace ssdpulse::block
