// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/attribution.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ssdpulse::stages {
namespace {

model::KernelDecision decision_of(model::IoAccounting accounting) {
  switch (accounting) {
    case model::IoAccounting::root_only:
      return model::KernelDecision::root_only;
    case model::IoAccounting::below_root:
      return model::KernelDecision::below_root;
    case model::IoAccounting::unknown:
      break;
  }
  return model::KernelDecision::unknown;
}

}  // namespace

Findings Attribution::observe(const Tick& tick) {
  Findings findings;
  std::vector<std::shared_ptr<const model::DeviceTenants>> values(tick.devices.size());
  devices_.observe(tick, [&](std::size_t number, const DeviceTick& device, Device& known) {
    const auto& counted = device.block.attribution;
    if (!counted || !device.block.io) {
      return;
    }
    model::DeviceTenants value;
    if (tick.tenants) {
      const model::WallTime since = known.seen.value_or(device.block.io->since);
      known.slots.observe(known.steps.observe(*counted, *tick.tenants, tick.cgroups_gone), tick.at, since,
                          tick.settings.tenants);
      known.seen = tick.wall;
      value = known.slots.value();
    }
    value.named = tick.tenants != nullptr;
    value.paths = counted->paths;
    values[number] = std::make_shared<const model::DeviceTenants>(std::move(value));
  });
  if (tick.cgroups) {
    check_accounting(tick, findings.effects);
  }
  findings.values = [values = std::move(values), accounting = accounting_](model::Snapshot& snapshot) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      snapshot.devices[i].tenants = values[i];
    }
    if (accounting) {
      snapshot.kernel_features[model::KernelFeature::io_accounting] = decision_of(*accounting);
    }
  };
  return findings;
}

/// A host that charges all I/O to the root has only one tenant: without a log line nobody would know why.
void Attribution::check_accounting(const Tick& tick, Effects& effects) {
  const auto before = std::exchange(accounting_, tick.io_accounting);
  if (before == accounting_) {
    return;
  }
  if (tick.io_accounting == model::IoAccounting::root_only) {
    effects.lines.push_back(
        log::line(log::Level::warning,
                  "this host accounts all I/O to the root of its cgroups: every I/O is that of tenant \"/\"; "
                  "with systemd, set DefaultIOAccounting=yes in a file of /etc/systemd/system.conf.d, and run "
                  "systemctl daemon-reexec"));
  } else if (before == model::IoAccounting::root_only) {
    effects.lines.push_back(log::line(log::Level::info, "this host accounts I/O to its cgroups now"));
  }
}

}  // namespace ssdpulse::stages
