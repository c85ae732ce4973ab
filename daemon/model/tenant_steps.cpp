// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/tenant_steps.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ssdpulse::model {
namespace {

bool counted_less(const TenantDone& now, const TenantDone& before) {
  for (std::size_t i = 0; i < now.totals.size(); ++i) {
    if (now.totals[i].ios < before.totals[i].ios) {
      return true;
    }
  }
  return now.commits < before.commits;
}

}  // namespace

std::uint64_t TenantDone::bytes() const {
  return std::accumulate(totals.begin(), totals.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const AttributedTotals& of) { return sum + of.bytes; });
}

TenantDone& TenantDone::operator+=(const TenantDone& more) {
  for (std::size_t i = 0; i < totals.size(); ++i) {
    totals[i] += more.totals[i];
  }
  commits += more.commits;
  return *this;
}

TenantDone& TenantDone::operator-=(const TenantDone& less) {
  for (std::size_t i = 0; i < totals.size(); ++i) {
    totals[i] -= less.totals[i];
  }
  commits -= less.commits;
  return *this;
}

TenantStep TenantSteps::observe(const DeviceAttribution& now, const Tenants& tenants,
                                const std::vector<CgroupId>& gone_cgroups) {
  TenantStep step;
  std::map<CgroupId, TenantDone> counted;
  for (const auto& [id, totals] : now.cgroups) {
    counted[id].totals = totals;
  }
  for (const auto& [id, commits] : now.commits) {
    counted[id].commits = commits;
  }
  std::vector<CgroupState> gone;
  for (const auto& [id, done] : counted) {
    const auto [state, is_new] = cgroups_.try_emplace(id);
    CgroupState& known = state->second;
    TenantDone part = done;
    if (!is_new && counted_less(done, known.done)) {
      gone.push_back(known);  // its cells were freed, and it came back
    } else if (!is_new) {
      part -= known.done;
    }
    known.done = done;
    if (const auto who = tenants.find(id); who != tenants.end()) {
      known.who = who->second;
    }
    if (known.who.name.empty()) {
      step.other += part;
    } else {
      auto& tenant = step.tenants[known.who.name];
      tenant.who = known.who;
      tenant.done += part;
      tenant.stays = tenant.stays || !std::binary_search(gone_cgroups.begin(), gone_cgroups.end(), id);
    }
  }
  std::erase_if(cgroups_, [&](auto& entry) {
    const bool left = !counted.contains(entry.first);
    if (left) {
      gone.push_back(std::move(entry.second));
    }
    return left;
  });
  // The counts of gone cgroups come back in `departed`: the rest is what they did since the last reading.
  TenantDone rest{now.departed, now.departed_commits};
  rest -= std::exchange(departed_, rest);
  for (const CgroupState& cgroup : gone) {
    rest -= cgroup.done;
  }
  if (gone.size() == 1 && !gone[0].who.name.empty()) {
    auto& tenant = step.tenants[gone[0].who.name];
    tenant.who = gone[0].who;
    tenant.done += rest;
  } else {
    step.other += rest;
  }
  TenantDone without_slot{now.other, now.other_commits};
  without_slot -= std::exchange(other_, without_slot);
  step.other += without_slot;
  return step;
}

}  // namespace ssdpulse::model
