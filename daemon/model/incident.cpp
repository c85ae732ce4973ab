// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/incident.h"

#include <algorithm>
#include <tuple>

namespace ssdpulse::model {
namespace {

bool is_caused_by_load(SpikeCause cause) { return cause == SpikeCause::queue || cause == SpikeCause::saturation; }

/// Rare outliers last from the first to the last of them, with nothing wrong in between.
bool has_only_outliers(const LatencySpike& spike) { return spike.evidence.contains(EvidenceKey::outliers); }

bool overlaps(const LatencySpike& a, const LatencySpike& b) { return a.begin < end_of(b) && b.begin < end_of(a); }

bool is_within_commits(const LatencySpike& spike, const std::vector<LatencySpike>& spikes) {
  return spike.operation == Operation::flush &&
         std::any_of(spikes.begin(), spikes.end(), [&](const LatencySpike& other) {
           return other.operation == Operation::commit && other.device == spike.device && overlaps(other, spike);
         });
}

/// The seconds of all spikes; flushes within commits count once.
template <typename Seconds>
double sum_of(const std::vector<LatencySpike>& spikes, Seconds seconds_of) {
  double sum = 0;
  for (const LatencySpike& spike : spikes) {
    sum += is_within_commits(spike, spikes) ? 0 : seconds_of(spike);
  }
  return sum;
}

/// Orders spikes by how well they name the incident.
auto rank_of(const LatencySpike& spike, const std::vector<LatencySpike>& spikes) {
  const bool known = spike.active_tenants > 1 && !spike.slowed.empty();
  const bool waited_for = spike.operation != Operation::write || known;
  // People wait for reads and commits, and the name should not change with every second.
  constexpr double kPreferred = 1.5;
  const double harm = harm_of(spike) * (spike.operation == Operation::write ? 1 : kPreferred);
  return std::tuple(!is_within_commits(spike, spikes), waited_for, harm, spike.peak_seconds);
}

/// Moves the spike that names the incident to the front.
void choose_headline(Incident& incident) {
  auto& spikes = incident.spikes;
  const auto best = std::max_element(spikes.begin(), spikes.end(), [&](const LatencySpike& a, const LatencySpike& b) {
    return rank_of(a, spikes) < rank_of(b, spikes);
  });
  std::rotate(spikes.begin(), best, best + 1);
}

}  // namespace

bool is_harmful(const LatencySpike& spike) {
  if (!is_caused_by_load(spike.cause) || spike.operation == Operation::commit || spike.operation == Operation::flush) {
    return true;
  }
  if (spike.active_tenants == 0 || (spike.active_tenants == 1 && spike.operation == Operation::read)) {
    return true;
  }
  constexpr double kSmallPart = 0.01;  // of the excess
  const SpikeTenant* culprit = culprit_of(spike);
  return std::any_of(spike.slowed.begin(), spike.slowed.end(), [&](const SpikeTenant& tenant) {
    return tenant.name != kRootTenant && (culprit == nullptr || tenant.name != culprit->name) &&
           tenant.waited_seconds > kSmallPart * spike.excess_seconds;
  });
}

const SpikeTenant* culprit_of(const LatencySpike& spike) {
  const auto first = [](const std::vector<SpikeTenant>& tenants) {
    return tenants.empty() || tenants.front().name == kRootTenant ? nullptr : &tenants.front();
  };
  if (spike.cause == SpikeCause::flush) {
    return amount(spike.evidence, EvidenceKey::flushes_to_baseline) >= kMoreFlushes ? first(spike.committers) : nullptr;
  }
  return spike.cause == SpikeCause::discard || is_caused_by_load(spike.cause) ? first(spike.heaviest) : nullptr;
}

double harm_of(const LatencySpike& spike) {
  const double waits = amount(spike.evidence, EvidenceKey::standstill_waited_seconds);
  const SpikeTenant* culprit = culprit_of(spike);
  if (culprit == nullptr || spike.slowed.empty() || spike.active_tenants <= 1) {
    return spike.excess_seconds + waits;
  }
  double harm = waits;
  for (const SpikeTenant& tenant : spike.slowed) {
    harm += tenant.name == culprit->name ? 0 : tenant.waited_seconds;
  }
  return harm;
}

double Incident::harm_seconds() const { return sum_of(spikes, harm_of); }

double Incident::excess_seconds() const {
  return sum_of(spikes, [](const LatencySpike& spike) { return spike.excess_seconds; });
}

const LatencySpike* Incident::with_culprit() const {
  const auto found = std::find_if(spikes.begin(), spikes.end(), [&](const LatencySpike& spike) {
    return spike.cause == headline().cause && culprit_of(spike) != nullptr;
  });
  return found == spikes.end() ? nullptr : &*found;
}

const SpikeTenant* Incident::victim() const {
  const LatencySpike* named = with_culprit();
  const auto& slowed = headline().slowed;
  const auto found = std::find_if(slowed.begin(), slowed.end(), [&](const SpikeTenant& tenant) {
    return named == nullptr || tenant.name != culprit_of(*named)->name || headline().active_tenants <= 1;
  });
  return found == slowed.end() ? nullptr : &*found;
}

DeviceGroups::DeviceGroups(const std::vector<Membership>& memberships) {
  std::map<std::string, std::string> first;  // device of each array
  for (const Membership& membership : memberships) {
    const auto [found, is_new] = first.emplace(membership.array, membership.device);
    const std::string joined = of(found->second);
    const std::string own = of(membership.device);
    group_.emplace(membership.device, own);
    group_.emplace(found->second, joined);
    for (auto& [device, group] : group_) {
      group = group == own ? joined : group;
    }
  }
}

std::string DeviceGroups::of(const std::string& device) const {
  const auto found = group_.find(device);
  return found == group_.end() ? device : found->second;
}

std::vector<Incident> incidents_of(const std::vector<LatencySpike>& ended, const std::vector<LatencySpike>& going_on,
                                   const DeviceGroups& groups) {
  struct Entry {
    const LatencySpike* spike;
    bool going_on;
  };
  std::map<std::string, std::vector<Entry>> by_group;
  const auto take = [&](const std::vector<LatencySpike>& spikes, bool still) {
    for (const LatencySpike& spike : spikes) {
      if (is_harmful(spike)) {
        by_group[groups.of(spike.device)].push_back({&spike, still});
      }
    }
  };
  take(ended, false);
  take(going_on, true);
  std::vector<Incident> incidents;
  for (auto& [group, entries] : by_group) {
    // Outliers last: they belong to an incident that covers them, but do not prolong it.
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::tuple(has_only_outliers(*a.spike), a.spike->begin) <
             std::tuple(has_only_outliers(*b.spike), b.spike->begin);
    });
    const std::size_t first = incidents.size();
    for (const Entry& entry : entries) {
      const LatencySpike& spike = *entry.spike;
      const auto fits = [&](const Incident& incident) {
        return has_only_outliers(spike) ? spike.begin >= incident.begin && end_of(spike) <= incident.end + kIncidentGap
                                        : spike.begin <= incident.end + kIncidentGap;
      };
      const auto own = std::find_if(incidents.begin() + static_cast<std::ptrdiff_t>(first), incidents.end(), fits);
      if (own == incidents.end()) {
        incidents.push_back({entry.going_on, {spike}, spike.begin, end_of(spike)});
        continue;
      }
      own->spikes.push_back(spike);
      if (!has_only_outliers(spike)) {
        own->going_on = own->going_on || entry.going_on;
        own->end = std::max(own->end, end_of(spike));
      }
    }
  }
  for (Incident& incident : incidents) {
    choose_headline(incident);
  }
  std::stable_sort(incidents.begin(), incidents.end(), [](const Incident& a, const Incident& b) {
    return a.going_on != b.going_on ? a.going_on : a.going_on ? a.harm_seconds() > b.harm_seconds() : a.end > b.end;
  });
  return incidents;
}

}  // namespace ssdpulse::model
