// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/tenants/tenant_slots.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace ssdpulse::analysis {

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

}  // namespace ssdpulse::analysis
