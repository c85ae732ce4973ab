// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/spike_tenants.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::analysis {
namespace {

using model::AttributedOperation;
using model::SpikeTenant;

const model::AttributedTotals& of(const model::TotalsByOperation& totals, AttributedOperation operation) {
  return totals[static_cast<std::size_t>(operation)];
}

template <typename Value>
std::vector<SpikeTenant> most(std::vector<SpikeTenant> tenants, Value SpikeTenant::*by) {
  std::erase_if(tenants, [&](const SpikeTenant& tenant) { return !(tenant.*by > 0); });
  std::stable_sort(tenants.begin(), tenants.end(),
                   [&](const SpikeTenant& a, const SpikeTenant& b) { return a.*by > b.*by; });
  tenants.resize(std::min(tenants.size(), model::kMostSpikeTenants));
  return tenants;
}

}  // namespace

AttributedOperation told_by(model::SpikeOperation operation) {
  return operation == model::SpikeOperation::read ? AttributedOperation::read : AttributedOperation::write;
}

void UsualTenants::learn(const TenantWork& work, AttributedOperation operation, double seconds) {
  constexpr double kForgotten = 1e-3;  // I/Os: the last one was a quarter of an hour ago or longer
  const double past = std::exp(-seconds / kSeconds);
  for (auto& [tenant, means] : tenants_) {
    Mean& mean = means[static_cast<std::size_t>(operation)];
    mean.ios *= past;
    mean.device_seconds *= past;
  }
  std::erase_if(tenants_, [&](const auto& entry) {
    return std::all_of(entry.second.begin(), entry.second.end(), [&](const Mean& one) { return one.ios < kForgotten; });
  });
  for (const auto& [tenant, totals] : work) {
    const model::AttributedTotals& done = of(totals, operation);
    if (done.ios == 0 || (tenants_.size() >= kMost && !tenants_.contains(tenant))) {
      continue;
    }
    Mean& mean = tenants_[tenant][static_cast<std::size_t>(operation)];
    mean.ios += static_cast<double>(done.ios);
    mean.device_seconds += static_cast<double>(done.device_ns) / 1e9;
  }
}

std::optional<double> UsualTenants::seconds(const std::string& tenant, AttributedOperation operation) const {
  const auto found = tenants_.find(tenant);
  if (found == tenants_.end() || found->second[static_cast<std::size_t>(operation)].ios <= 0) {
    return std::nullopt;
  }
  const Mean& mean = found->second[static_cast<std::size_t>(operation)];
  return mean.device_seconds / mean.ios;
}

void SpikeTenants::add(const TenantWork& work) {
  for (const auto& [tenant, totals] : work) {
    auto& done = done_[tenant];
    for (std::size_t i = 0; i < totals.size(); ++i) {
      done[i] += totals[i];
    }
  }
}

void SpikeTenants::describe(model::LatencySpike& spike) const {
  const AttributedOperation operation = told_by(spike.operation);
  std::vector<SpikeTenant> tenants;
  for (const auto& [name, totals] : done_) {
    SpikeTenant tenant{name};
    tenant.bytes = spike.cause == model::SpikeCause::discard
                       ? of(totals, AttributedOperation::discard).bytes
                       : of(totals, AttributedOperation::read).bytes + of(totals, AttributedOperation::write).bytes;
    const model::AttributedTotals& done = of(totals, operation);
    if (const auto usual = usual_.seconds(name, operation)) {
      tenant.waited_seconds = static_cast<double>(done.device_ns) / 1e9 - *usual * static_cast<double>(done.ios);
    }
    tenants.push_back(std::move(tenant));
  }
  spike.heaviest = most(tenants, &SpikeTenant::bytes);
  spike.slowed = most(std::move(tenants), &SpikeTenant::waited_seconds);
}

}  // namespace ssdpulse::analysis
