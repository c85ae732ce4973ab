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

/// Sorted.
std::vector<std::pair<CgroupId, TenantDone>> counted_by_cgroup(const DeviceAttribution& now) {
  std::vector<std::pair<CgroupId, TenantDone>> counted;
  counted.reserve(now.cgroups.size() + now.commits.size());
  auto commits = now.commits.begin();
  const auto only_commits = [&](auto is_before) {
    for (; commits != now.commits.end() && is_before(commits->first); ++commits) {
      counted.push_back({commits->first, {{}, commits->second}});
    }
  };
  for (const auto& [id, totals] : now.cgroups) {
    only_commits([&, next = id](CgroupId one) { return one < next; });
    const bool has_commits = commits != now.commits.end() && commits->first == id;
    counted.push_back({id, {totals, has_commits ? (commits++)->second : 0}});
  }
  only_commits([](CgroupId) { return true; });
  return counted;
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

TenantStep::Tenant& TenantSteps::tenant_of(const Tenant& who) {
  TenantStep::Tenant& tenant = step_.tenants[who.name];
  tenant.who = who;
  tenant.in_step = true;
  return tenant;
}

const TenantStep& TenantSteps::observe(const DeviceAttribution& now, const Tenants& tenants,
                                       const std::vector<CgroupId>& gone_cgroups) {
  for (auto& [name, tenant] : step_.tenants) {
    tenant.done = {};
    tenant.stays = tenant.in_step = false;
  }
  step_.other = {};
  std::vector<CgroupState> gone;
  auto known = cgroups_.begin();
  const auto leave = [&] {
    gone.push_back(std::move(known->second));
    known = cgroups_.erase(known);
  };
  for (const auto& [id, done] : counted_by_cgroup(now)) {
    while (known != cgroups_.end() && known->first < id) {
      leave();
    }
    const bool is_new = known == cgroups_.end() || known->first != id;
    if (is_new) {
      known = cgroups_.emplace_hint(known, id, CgroupState{});
    }
    CgroupState& state = (known++)->second;
    TenantDone part = done;
    if (!is_new && counted_less(done, state.done)) {
      gone.push_back(state);  // its cells were freed, and it came back
    } else if (!is_new) {
      part -= state.done;
    }
    state.done = done;
    if (const auto who = tenants.find(id); who != tenants.end()) {
      state.who = who->second;
    }
    if (state.who.name.empty()) {
      step_.other += part;
    } else {
      TenantStep::Tenant& tenant = tenant_of(state.who);
      tenant.done += part;
      tenant.stays = tenant.stays || !std::binary_search(gone_cgroups.begin(), gone_cgroups.end(), id);
    }
  }
  while (known != cgroups_.end()) {
    leave();
  }
  add_gone(gone, now);
  std::erase_if(step_.tenants, [](const auto& entry) { return !entry.second.in_step; });
  TenantDone without_slot{now.other, now.other_commits};
  without_slot -= std::exchange(other_, without_slot);
  step_.other += without_slot;
  return step_;
}

/// The counts of gone cgroups come back in `departed`: the rest is what they did since the last reading.
void TenantSteps::add_gone(const std::vector<CgroupState>& gone, const DeviceAttribution& now) {
  TenantDone rest{now.departed, now.departed_commits};
  rest -= std::exchange(departed_, rest);
  for (const CgroupState& cgroup : gone) {
    rest -= cgroup.done;
  }
  if (gone.size() == 1 && !gone[0].who.name.empty()) {
    tenant_of(gone[0].who).done += rest;
  } else {
    step_.other += rest;
  }
}

}  // namespace ssdpulse::model
