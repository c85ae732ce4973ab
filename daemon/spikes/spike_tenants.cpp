// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/spike_tenants.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::spikes {
namespace {

using model::Operation;
using model::SpikeTenant;

constexpr double kNearlyAllIos = 0.8;  // a share

/// The entry of the tenant in a map by name; none if there is no room for another one. `from`: an entry that is not
/// behind it, and is moved to it.
template <typename Entries>
auto* entry_of(Entries& entries, typename Entries::iterator& from, const std::string& tenant, std::size_t max) {
  while (from != entries.end() && from->first < tenant) {
    ++from;
  }
  if (from == entries.end() || from->first != tenant) {
    if (entries.size() >= max) {
      return static_cast<typename Entries::mapped_type*>(nullptr);
    }
    from = entries.try_emplace(from, tenant);
  }
  return &from->second;
}

/// Tenants, and by how much they exceed their own usual.
using Ranked = std::vector<std::pair<SpikeTenant, double>>;

/// The tenants that exceed it most.
std::vector<SpikeTenant> largest(Ranked tenants) {
  std::vector<SpikeTenant> chosen;
  std::erase_if(tenants, [](const auto& one) { return !(one.second > 0); });
  std::stable_sort(tenants.begin(), tenants.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (std::size_t i = 0; i < std::min(tenants.size(), model::kMaxSpikeTenants); ++i) {
    chosen.push_back(std::move(tenants[i].first));
  }
  return chosen;
}

/// The same, or nobody where the first one has no real part in the excess of all: a small rise is no cause.
std::vector<SpikeTenant> senders(Ranked tenants) {
  constexpr double kRealPart = 0.3;
  double all = 0, max = 0;
  for (const auto& [tenant, excess] : tenants) {
    all += std::max(0.0, excess);
    max = std::max(max, excess);
  }
  return max >= kRealPart * all ? largest(std::move(tenants)) : std::vector<SpikeTenant>{};
}

}  // namespace

Operation attributed_operation(Operation operation) {
  return operation == model::Operation::read ? Operation::read : Operation::write;
}

void UsualTenants::learn(const TenantWork& work, Operation operation, double seconds) {
  constexpr double kForgotten = 1e-3;  // I/Os: the last one was a quarter of an hour ago or longer
  const double past = std::exp(-seconds / kSeconds);
  double& learned = learned_seconds_[operation];
  learned = past * learned + seconds;
  for (auto& [tenant, means] : tenants_) {
    Mean& mean = means[operation];
    mean.ios *= past;
    mean.bytes *= past;
    mean.commits *= past;
    mean.device_seconds *= past;
  }
  std::erase_if(tenants_, [&](const auto& entry) {
    return std::all_of(entry.second.begin(), entry.second.end(),
                       [&](const Mean& one) { return one.ios < kForgotten && one.commits < kForgotten; });
  });
  auto known = tenants_.begin();
  for (const auto& [tenant, tenant_done] : work) {
    const model::AttributedTotals& done = tenant_done.totals[operation];
    const std::uint64_t commits = operation == Operation::write ? tenant_done.commits : 0;
    auto* means = done.ios == 0 && commits == 0 ? nullptr : entry_of(tenants_, known, tenant, kMaxTenants);
    if (means == nullptr) {
      continue;
    }
    Mean& mean = (*means)[operation];
    mean.ios += static_cast<double>(done.ios);
    mean.bytes += static_cast<double>(done.bytes);
    mean.commits += static_cast<double>(commits);
    mean.device_seconds += static_cast<double>(done.device_ns) / 1e9;
  }
}

std::optional<double> UsualTenants::seconds(const std::string& tenant, Operation operation) const {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end() || found->second[operation].ios <= 0) {
    return std::nullopt;
  }
  const Mean& mean = found->second[operation];
  return mean.device_seconds / mean.ios;
}

UsualTenants::Rates UsualTenants::rates(const std::string& tenant) const {
  Rates rates;
  if (const auto found = tenants_.find(tenant); found != tenants_.end()) {
    for (const auto operation : {Operation::read, Operation::write}) {
      const Mean& mean = found->second[operation];
      const double learned = learned_seconds_[operation];
      rates.bytes += learned > 0 ? mean.bytes / learned : 0;
      rates.commits += learned > 0 ? mean.commits / learned : 0;
      rates.writes += learned > 0 && operation == Operation::write ? mean.ios / learned : 0;
    }
  }
  return rates;
}

void SpikeTenants::add(const TenantWork& work, double seconds) {
  seconds_ += seconds;
  for (const auto& [tenant, done] : work) {
    done_[tenant] += done;
  }
}

/// The tenant besides the root that does nearly all writes.
std::optional<std::string> SpikeTenants::only_writer() const {
  std::uint64_t all = 0, max = 0;
  std::string writer;
  for (const auto& [name, done] : done_) {
    const std::uint64_t writes = name == model::kRootTenant ? 0 : done.totals[Operation::write].ios;
    all += writes;
    if (writes > max) {
      max = writes;
      writer = name;
    }
  }
  return max > 0 && static_cast<double>(max) >= kNearlyAllIos * static_cast<double>(all) ? std::optional(writer)
                                                                                         : std::nullopt;
}

/// Seconds that each tenant's I/Os waited beyond what is usual for it.
std::map<std::string, double> SpikeTenants::waits(const model::LatencySpike& spike) const {
  std::map<std::string, double> waits;
  if (spike.operation == Operation::flush || spike.operation == Operation::commit) {
    std::uint64_t commits = 0;
    for (const auto& [name, done] : done_) {
      commits += done.commits;
    }
    const auto writer = only_writer();
    for (const auto& [name, done] : done_) {
      if (done.commits > 0) {
        waits[name == model::kRootTenant && writer ? *writer : name] +=
            spike.excess_seconds * static_cast<double>(done.commits) / static_cast<double>(commits);
      }
    }
    return waits;
  }
  const Operation operation = attributed_operation(spike.operation);
  double in_device = 0;
  std::uint64_t all = 0;
  const model::AttributedTotals* busiest = nullptr;
  std::string whose;
  for (const auto& [name, tenant_done] : done_) {
    const model::AttributedTotals& done = tenant_done.totals[operation];
    all += done.ios;
    if (busiest == nullptr || done.ios > busiest->ios) {
      busiest = &done;
      whose = name;
    }
    if (const auto usual = usual_.seconds(name, operation)) {
      waits[name] = static_cast<double>(done.device_ns) / 1e9 - *usual * static_cast<double>(done.ios);
      in_device += std::max(0.0, waits[name]);
    }
  }
  // What was waited before the device is not measured by tenant. It is known only of who does nearly everything.
  const double before_device = spike.excess_seconds - in_device;
  if (before_device > in_device && busiest != nullptr && busiest->ios > 0 &&
      static_cast<double>(busiest->ios) >= kNearlyAllIos * static_cast<double>(all)) {
    waits[whose] = std::max(0.0, waits[whose]) + before_device;
  }
  return waits;
}

void SpikeTenants::describe(model::LatencySpike& spike) const {
  constexpr double kActive = 1;         // I/Os per second,
  constexpr double kActivePart = 0.02;  // and of all I/Os
  Ranked by_bytes, by_commits, by_writes, by_wait;
  const auto waited = waits(spike);
  std::uint64_t ios = 0;
  for (const auto& [name, done] : done_) {
    ios += done.totals[Operation::read].ios + done.totals[Operation::write].ios;
  }
  const double active = std::max(kActive * std::max(1.0, seconds_), kActivePart * static_cast<double>(ios));
  const bool of_discards = spike.cause == model::SpikeCause::discard;
  spike.active_tenants = 0;
  for (const auto& [name, done] : done_) {
    const UsualTenants::Rates usual = usual_.rates(name);
    const auto& reads = done.totals[Operation::read];
    const auto& writes = done.totals[Operation::write];
    SpikeTenant tenant{name};
    tenant.bytes = of_discards ? done.totals[Operation::discard].bytes : reads.bytes + writes.bytes;
    tenant.commits = done.commits;
    const auto found = waited.find(name);
    tenant.waited_seconds = found == waited.end() ? 0 : found->second;
    const bool is_root = name == model::kRootTenant;
    spike.active_tenants += !is_root && static_cast<double>(reads.ios + writes.ios) >= active ? 1 : 0;
    by_bytes.emplace_back(tenant, static_cast<double>(tenant.bytes) - (of_discards ? 0 : usual.bytes * seconds_));
    by_commits.emplace_back(tenant, static_cast<double>(done.commits) - usual.commits * seconds_);
    by_wait.emplace_back(tenant, tenant.waited_seconds);
    if (!is_root) {
      tenant.bytes = writes.bytes;
      tenant.commits = 0;
      by_writes.emplace_back(std::move(tenant), static_cast<double>(writes.ios) - usual.writes * seconds_);
    }
  }
  spike.heaviest = senders(std::move(by_bytes));
  if (const auto first = spike.heaviest.empty() ? done_.end() : done_.find(spike.heaviest.front().name);
      first != done_.end() && !of_discards && spike.heaviest.front().bytes > 0) {
    spike.evidence[model::EvidenceKey::heaviest_written_share] =
        static_cast<double>(first->second.totals[Operation::write].bytes) /
        static_cast<double>(spike.heaviest.front().bytes);
  }
  spike.committers = senders(std::move(by_commits));
  spike.slowed = largest(std::move(by_wait));
  // The commits of a file system's journal are the root's, whoever called fsync: then it is whoever writes more often.
  if (!spike.committers.empty() && spike.committers.front().name == model::kRootTenant) {
    if (auto writers = senders(std::move(by_writes)); !writers.empty()) {
      spike.committers.insert(spike.committers.begin(), std::move(writers.front()));
      spike.committers.resize(std::min(spike.committers.size(), model::kMaxSpikeTenants));
    }
  }
}

void UsualSenders::learn(const TenantWork& work, double seconds) {
  constexpr double kForgotten = 1e-4;  // I/Os per second
  const double part = std::max(1 - std::exp(-seconds / kSeconds), seconds / (weight_ + seconds));
  weight_ = std::min(weight_ + seconds, kSeconds);
  for (auto& [tenant, rates] : tenants_) {
    for (Rate& rate : rates) {
      rate.ios *= 1 - part;
      rate.bytes *= 1 - part;
    }
  }
  auto known = tenants_.begin();
  for (const auto& [tenant, done] : work) {
    Rates* own = entry_of(tenants_, known, tenant, kMaxTenants);
    if (own == nullptr) {
      continue;
    }
    Rates& rates = *own;
    for (std::size_t operation = 0; operation < rates.size(); ++operation) {
      rates[operation].ios += part * static_cast<double>(done.totals[operation].ios) / seconds;
      rates[operation].bytes += part * static_cast<double>(done.totals[operation].bytes) / seconds;
    }
  }
  std::erase_if(tenants_, [&](const auto& entry) { return entry.second[0].ios + entry.second[1].ios < kForgotten; });
}

std::optional<double> UsualSenders::load(Operation operation, double usual_rate,
                                         std::span<const TenantWork* const> work, double seconds) const {
  constexpr double kMainShare = 0.5;
  Rates usual;
  Rates now;
  for (const auto& [tenant, rates] : tenants_) {
    if (rates.at(index(operation)).ios < kMinShare * usual_rate) {
      continue;
    }
    model::TenantDone sent;
    for (const TenantWork* window : work) {
      if (const auto found = window->find(tenant); found != window->end()) {
        sent += found->second;
      }
    }
    for (std::size_t i = 0; i < rates.size(); ++i) {
      usual[i].ios += rates[i].ios;
      usual[i].bytes += rates[i].bytes;
      now[i].ios += static_cast<double>(sent.totals[i].ios) / seconds;
      now[i].bytes += static_cast<double>(sent.totals[i].bytes) / seconds;
    }
  }
  if (usual.at(index(operation)).ios <= kMainShare * usual_rate) {
    return std::nullopt;
  }
  double load = 0;
  for (std::size_t i = 0; i < usual.size(); ++i) {
    // Without any before, one a second counts as usual.
    load = std::max({load, now[i].ios / std::max(usual[i].ios, 1.0), now[i].bytes / std::max(usual[i].bytes, 4096.0)});
  }
  return load;
}

}  // namespace ssdpulse::spikes
