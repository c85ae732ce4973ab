// SPDX-License-Identifier: Apache-2.0
#include "daemon/tenants/attribution_stage.h"

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace ssdpulse::tenants {

void TenantSlots::observe(const TenantStep& step, model::SteadyTime at, WallTime since, std::size_t most) {
  std::vector<const TenantStep::Tenant*> newcomers;
  for (const auto& [name, tenant] : step.tenants) {
    const auto slot = slots_.find(name);
    if (slot != slots_.end()) {
      slot->second.who = tenant.who;
      slot->second.done += tenant.done;
      slot->second.last_io = tenant.done.nothing() ? slot->second.last_io : at;
    } else if (!tenant.done.nothing()) {
      newcomers.push_back(&tenant);
    }
  }
  take_leave(step, at);
  while (slots_.size() > most) {  // `most` was lowered
    make_room(at, 0);
  }
  std::stable_sort(newcomers.begin(), newcomers.end(),
                   [](const auto* a, const auto* b) { return a->done.bytes() > b->done.bytes(); });
  Slots taken;  // a tenant that was never shown does not depart
  for (const TenantStep::Tenant* tenant : newcomers) {
    if (slots_.size() + taken.size() < most || make_room(at, most)) {
      taken.emplace(tenant->who.name,
                    Slot{tenant->who, tenant->done, since, at, tenant->stays ? std::nullopt : std::optional(at)});
    } else {
      other_ += tenant->done;
    }
  }
  slots_.merge(taken);
  other_ += step.other;
}

void TenantSlots::take_leave(const TenantStep& step, model::SteadyTime at) {
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    const auto here = slot++;
    const auto still = step.tenants.find(here->first);
    std::optional<model::SteadyTime>& gone_since = here->second.gone_since;
    gone_since =
        still != step.tenants.end() && still->second.stays ? std::nullopt : std::optional(gone_since.value_or(at));
    if (gone_since && at - std::max(*gone_since, here->second.last_io) >= kGoneStays) {
      depart(here);
    }
  }
}

/// False: all slots are in use. If `most` is 0, the tenant that has been gone or idle for longest goes in any case.
bool TenantSlots::make_room(model::SteadyTime at, std::size_t most) {
  const auto least = std::min_element(slots_.begin(), slots_.end(), [](const auto& a, const auto& b) {
    const auto worth = [](const Slot& slot) {
      return std::tuple(!slot.gone_since, slot.gone_since.value_or(slot.last_io));
    };
    return worth(a.second) < worth(b.second);
  });
  const bool can_go =
      least != slots_.end() && (least->second.gone_since || at - least->second.last_io >= kIdleGivesUp || most == 0);
  if (can_go) {
    depart(least);
  }
  return can_go;
}

void TenantSlots::depart(Slots::iterator slot) {
  departed_ += slot->second.done;
  slots_.erase(slot);
}

model::DeviceTenants TenantSlots::value() const {
  model::DeviceTenants value;
  for (const auto& [name, slot] : slots_) {
    value.tenants.push_back({slot.who, slot.done.totals, slot.done.commits, slot.since});
  }
  value.other = other_.totals;
  value.departed = departed_.totals;
  value.other_commits = other_.commits;
  return value;
}

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

model::Findings Attribution::observe(const model::Tick& tick) {
  model::Findings findings;
  std::vector<std::shared_ptr<const model::DeviceTenants>> values(tick.devices.size());
  devices_.observe(tick, [&](std::size_t number, const model::DeviceTick& device, Device& known) {
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
void Attribution::check_accounting(const model::Tick& tick, model::Effects& effects) {
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

}  // namespace ssdpulse::tenants
