// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/drift.h"

#include <utility>
#include <vector>

namespace ssdpulse::stages {
namespace {

analysis::OurCounts counts_of(const model::DeviceSample& sample) {
  return analysis::compose_counts(*sample.io, sample.events);
}

}  // namespace

Findings Drift::observe(const Tick& tick) {
  std::vector<model::AccountingDrift> values(tick.devices.size());
  devices_.observe(tick, [&](std::size_t number, const DeviceTick& device, Device& known) {
    if (std::exchange(known.kernel_account, device.kernel_account) != device.kernel_account) {
      known.drift.restart();
    }
    if (const auto& look = device.account) {
      known.drift.observe(counts_of(look->ours_before), look->kernel_before, look->kernel_after,
                          counts_of(look->ours_after));
    }
    values[number] = known.drift.value();
  });
  return {[values = std::move(values)](model::Snapshot& snapshot) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      snapshot.devices[i].drift = values[i];
    }
  }};
}

}  // namespace ssdpulse::stages
