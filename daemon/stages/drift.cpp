// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/drift.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ssdpulse::stages {
namespace {

struct Value {
  model::AccountingDrift drift;
  std::optional<model::Unseen> unseen;
};

}  // namespace

Findings Drift::observe(const Tick& tick) {
  Findings findings;
  std::vector<Value> values(tick.devices.size());
  const bool nothing_runs = tick.before && tick.before->own_cost.effort == model::Effort::nothing;
  devices_.observe(tick, [&](std::size_t number, const DeviceTick& device, Device& known) {
    if (std::exchange(known.kernel_account, device.kernel_account) != device.kernel_account) {
      known.unseen.restart();
    }
    if (const auto& reading = device.account) {
      known.unseen.observe(reading->ours_before, reading->kernel_before, reading->kernel_after, reading->ours_after);
    }
    if (nothing_runs) {
      known.unseen.restart();
    }
    const bool requests = device.block.device->has_requests;
    const auto ios = known.unseen.ios();
    if (requests && !ios) {
      values[number].drift = device.drift;
      known.said = false;
      return;
    }
    values[number].unseen = model::Unseen{ios, requests};
    if (!std::exchange(known.said, true)) {
      findings.effects.lines.push_back(log::line(log::Level::warning, "{} is not measured: {}",
                                                 log::field("device", device.block.device->name),
                                                 model::unseen_text(requests)));
    }
  });
  findings.values = [values = std::move(values)](model::Snapshot& snapshot) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      snapshot.devices[i].drift = values[i].drift;
      snapshot.devices[i].unseen = values[i].unseen;
      if (values[i].unseen) {
        snapshot.devices[i].io = nullptr;
      }
    }
  };
  return findings;
}

bool is_unseen(const Tick& tick, const DeviceTick& device) {
  const model::Device& now = *device.block.device;
  return !now.has_requests ||
         (tick.before && std::any_of(tick.before->devices.begin(), tick.before->devices.end(),
                                     [&](const auto& one) { return one.device->name == now.name && one.unseen; }));
}

}  // namespace ssdpulse::stages
