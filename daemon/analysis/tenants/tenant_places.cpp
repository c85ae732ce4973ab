// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/tenants/tenant_places.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace ssdpulse::analysis {

void TenantPlaces::observe(const TenantStep& step, model::SteadyTime at, WallTime since, std::size_t most) {
  std::vector<const TenantStep::Tenant*> newcomers;
  for (const auto& [name, tenant] : step.tenants) {
    const auto place = places_.find(name);
    if (place != places_.end()) {
      place->second.who = tenant.who;
      place->second.done += tenant.done;
      place->second.last_io = tenant.done.nothing() ? place->second.last_io : at;
    } else if (!tenant.done.nothing()) {
      newcomers.push_back(&tenant);
    }
  }
  take_leave(step, at);
  while (places_.size() > most) {  // `most` was lowered
    make_room(at, 0);
  }
  std::stable_sort(newcomers.begin(), newcomers.end(),
                   [](const auto* a, const auto* b) { return a->done.bytes() > b->done.bytes(); });
  Places taken;  // a tenant that was never shown does not depart
  for (const TenantStep::Tenant* tenant : newcomers) {
    if (places_.size() + taken.size() < most || make_room(at, most)) {
      taken.emplace(tenant->who.name,
                    Place{tenant->who, tenant->done, since, at, tenant->stays ? std::nullopt : std::optional(at)});
    } else {
      other_ += tenant->done;
    }
  }
  places_.merge(taken);
  other_ += step.other;
}

void TenantPlaces::take_leave(const TenantStep& step, model::SteadyTime at) {
  for (auto place = places_.begin(); place != places_.end();) {
    const auto here = place++;
    const auto still = step.tenants.find(here->first);
    std::optional<model::SteadyTime>& gone_since = here->second.gone_since;
    gone_since =
        still != step.tenants.end() && still->second.stays ? std::nullopt : std::optional(gone_since.value_or(at));
    if (gone_since && at - std::max(*gone_since, here->second.last_io) >= kGoneStays) {
      depart(here);
    }
  }
}

/// False: all places are in use. If `most` is 0, the tenant that has been gone or idle for longest goes in any case.
bool TenantPlaces::make_room(model::SteadyTime at, std::size_t most) {
  const auto least = std::min_element(places_.begin(), places_.end(), [](const auto& a, const auto& b) {
    const auto worth = [](const Place& place) {
      return std::tuple(!place.gone_since, place.gone_since.value_or(place.last_io));
    };
    return worth(a.second) < worth(b.second);
  });
  const bool can_go =
      least != places_.end() && (least->second.gone_since || at - least->second.last_io >= kIdleGivesUp || most == 0);
  if (can_go) {
    depart(least);
  }
  return can_go;
}

void TenantPlaces::depart(Places::iterator place) {
  departed_ += place->second.done;
  places_.erase(place);
}

model::DeviceTenants TenantPlaces::value() const {
  model::DeviceTenants value;
  for (const auto& [name, place] : places_) {
    value.tenants.push_back({place.who, place.done.totals, place.done.commits, place.since});
  }
  value.other = other_.totals;
  value.departed = departed_.totals;
  value.other_commits = other_.commits;
  return value;
}

}  // namespace ssdpulse::analysis
