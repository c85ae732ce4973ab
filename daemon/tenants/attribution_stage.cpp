// SPDX-License-Identifier: Apache-2.0
#include "daemon/tenants/attribution_stage.h"

#include <algorithm>
#include <array>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/base/complete.h"

namespace ssdpulse::tenants {
namespace {

struct AccountingDecision {
  model::IoAccounting accounting;
  model::KernelDecision decision;
};
constexpr auto kDecisions = std::to_array<AccountingDecision>({
    {model::IoAccounting::unknown, model::KernelDecision::unknown},
    {model::IoAccounting::root_only, model::KernelDecision::root_only},
    {model::IoAccounting::below_root, model::KernelDecision::below_root},
});
static_assert(util::is_table_of(kDecisions, &AccountingDecision::accounting));

}  // namespace

void TenantSlots::observe(const model::TenantStep& step, model::SteadyTime at, model::WallTime since,
                          std::size_t max_slots) {
  std::vector<const model::TenantStep::Tenant*> newcomers;
  auto slot = slots_.begin();  // both are sorted by name
  for (const auto& [name, tenant] : step.tenants) {
    while (slot != slots_.end() && slot->first < name) {
      ++slot;
    }
    if (slot != slots_.end() && slot->first == name) {
      slot->second.who = tenant.who;
      slot->second.done += tenant.done;
      slot->second.last_io = tenant.done.nothing() ? slot->second.last_io : at;
    } else if (!tenant.done.nothing()) {
      newcomers.push_back(&tenant);
    }
  }
  remove_gone(step, at);
  while (slots_.size() > max_slots) {  // the limit was lowered
    depart(longest_idle());
  }
  std::stable_sort(newcomers.begin(), newcomers.end(),
                   [](const auto* a, const auto* b) { return a->done.bytes() > b->done.bytes(); });
  Slots taken;  // a tenant that was never shown does not depart
  for (const model::TenantStep::Tenant* tenant : newcomers) {
    if (slots_.size() + taken.size() < max_slots || make_room(at)) {
      taken.emplace(tenant->who.name,
                    Slot{tenant->who, tenant->done, since, at, tenant->stays ? std::nullopt : std::optional(at)});
    } else {
      other_ += tenant->done;
    }
  }
  slots_.merge(taken);
  other_ += step.other;
}

void TenantSlots::remove_gone(const model::TenantStep& step, model::SteadyTime at) {
  auto tenant = step.tenants.begin();
  for (auto slot = slots_.begin(); slot != slots_.end();) {
    const auto current = slot++;
    while (tenant != step.tenants.end() && tenant->first < current->first) {
      ++tenant;
    }
    const bool stays = tenant != step.tenants.end() && tenant->first == current->first && tenant->second.stays;
    auto& [who, done, since, last_io, gone_since] = current->second;
    gone_since = stays ? std::nullopt : std::optional(gone_since.value_or(at));
    if (gone_since && at - std::max(*gone_since, last_io) >= kGoneKept) {
      depart(current);
    }
  }
}

/// The tenant that has been gone for longest, else idle.
TenantSlots::Slots::iterator TenantSlots::longest_idle() {
  return std::min_element(slots_.begin(), slots_.end(), [](const auto& a, const auto& b) {
    const auto rank = [](const Slot& slot) {
      return std::tuple(!slot.gone_since, slot.gone_since.value_or(slot.last_io));
    };
    return rank(a.second) < rank(b.second);
  });
}

/// False: all slots are in use, or there are none.
bool TenantSlots::make_room(model::SteadyTime at) {
  const auto candidate = longest_idle();
  const bool can_go =
      candidate != slots_.end() && (candidate->second.gone_since || at - candidate->second.last_io >= kIdleReplaced);
  if (can_go) {
    depart(candidate);
  }
  return can_go;
}

void TenantSlots::depart(Slots::iterator slot) {
  departed_ += slot->second.done;
  slots_.erase(slot);
}

model::DeviceTenants TenantSlots::value() const {
  model::DeviceTenants value;
  value.tenants.reserve(slots_.size());
  for (const auto& [name, slot] : slots_) {
    value.tenants.push_back({slot.who, slot.done.totals, slot.done.commits, slot.since});
  }
  value.other = other_.totals;
  value.departed = departed_.totals;
  value.other_commits = other_.commits;
  return value;
}

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
      const model::WallTime since = known.last_seen.value_or(device.block.io->since);
      known.slots.observe(known.steps.observe(*counted, *tick.tenants, tick.cgroups_gone), tick.at, since,
                          tick.settings.max_tenants);
      known.last_seen = tick.wall;
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
      snapshot.kernel_features[model::KernelFeature::io_accounting] =
          kDecisions[static_cast<std::size_t>(*accounting)].decision;
    }
  };
  return findings;
}

/// A host that charges all I/O to the root has only one tenant: without a log line nobody would know why.
void Attribution::check_accounting(const model::Tick& tick, model::Effects& effects) {
  if (accounting_ && tick.io_accounting == model::IoAccounting::unknown) {
    return;  // it could not be read this time
  }
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
