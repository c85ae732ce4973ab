// SPDX-License-Identifier: Apache-2.0
// SpikeTenants: the tenants that did most in a spike, and those that it slowed.
//
// Heaviest: the tenants with the most bytes of reads and writes, or of discards if discards are the cause. Slowed:
// those whose reads (writes, for a spike of anything other than reads) took the most device time in total beyond the
// usual mean of the same tenant. A tenant that was not seen before the spike has no usual mean, and is not listed.
// Pure, and bounded by the number of tenants at a time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/model/attribution.h"
#include "daemon/model/spikes.h"

namespace ssdpulse::analysis {

/// What tenants did in a window, by name.
using TenantWork = std::map<std::string, model::TotalsByOperation>;

/// Mean device times of each tenant when nothing is wrong, over about the last two minutes in which it was active.
class UsualTenants {
 public:
  static constexpr double kSeconds = 120;  // time constant
  static constexpr std::size_t kMost = 2048;

  /// Learns from a window outside spikes of this operation. `seconds`: its length.
  void learn(const TenantWork& work, model::AttributedOperation operation, double seconds);

  /// Seconds per I/O; absent until one has been seen.
  [[nodiscard]] std::optional<double> seconds(const std::string& tenant, model::AttributedOperation operation) const;

 private:
  struct Mean {
    double ios = 0;
    double device_seconds = 0;
  };
  std::map<std::string, std::array<Mean, model::kAttributedOperations>> tenants_;
};

class SpikeTenants {
 public:
  /// `usual`: from before the spike.
  explicit SpikeTenants(UsualTenants usual) : usual_(std::move(usual)) {}

  void add(const TenantWork& work);
  /// Fills in heaviest and slowed, by the spike's operation and cause.
  void describe(model::LatencySpike& spike) const;

 private:
  UsualTenants usual_;
  TenantWork done_;
};

/// The operation whose device times show which tenants a spike of this operation slows.
model::AttributedOperation told_by(model::SpikeOperation operation);

}  // namespace ssdpulse::analysis
