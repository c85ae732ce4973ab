// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/usual_senders.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::analysis {

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
  for (const auto& [tenant, done] : work) {
    if (tenants_.size() >= kMaxTenants && !tenants_.contains(tenant)) {
      continue;
    }
    Rates& rates = tenants_[tenant];
    for (std::size_t operation = 0; operation < rates.size(); ++operation) {
      rates[operation].ios += part * static_cast<double>(done.totals[operation].ios) / seconds;
      rates[operation].bytes += part * static_cast<double>(done.totals[operation].bytes) / seconds;
    }
  }
  std::erase_if(tenants_, [&](const auto& entry) { return entry.second[0].ios + entry.second[1].ios < kForgotten; });
}

std::optional<double> UsualSenders::load(model::Operation operation, double usual_rate, const TenantWork& work,
                                         double seconds) const {
  constexpr double kMainShare = 0.5;
  Rates usual;
  Rates now;
  for (const auto& [tenant, rates] : tenants_) {
    if (rates.at(index(operation)).ios < kMinShare * usual_rate) {
      continue;
    }
    const auto sent = work.find(tenant);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      usual[i].ios += rates[i].ios;
      usual[i].bytes += rates[i].bytes;
      now[i].ios += sent == work.end() ? 0 : static_cast<double>(sent->second.totals[i].ios) / seconds;
      now[i].bytes += sent == work.end() ? 0 : static_cast<double>(sent->second.totals[i].bytes) / seconds;
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

}  // namespace ssdpulse::analysis
