// SPDX-License-Identifier: Apache-2.0
// Who did most in a spike, and who was slowed by it?
//
// Heaviest: the tenants with most bytes of reads and writes, or of discards where those are the cause. Slowed: those
// whose reads (writes, for a spike of writes or commits) took longest in the device beyond the mean of their own
// usual ones, all of them together; of a tenant that was not seen before the spike nothing is usual, and nothing is
// said. Pure, and bounded by the number of tenants that there are at a time.
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

/// Mean device times of each tenant when nothing is wrong, over about the last two minutes in which it did something.
class UsualTenants {
 public:
  static constexpr double kSeconds = 120;  // time constant
  static constexpr std::size_t kMost = 2048;

  /// A window outside of spikes of this operation.
  void learn(const TenantWork& work, model::AttributedOperation operation, double seconds);

  /// Seconds for an I/O; nothing while none was seen.
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
  /// `usual`: of before the spike.
  explicit SpikeTenants(UsualTenants usual) : usual_(std::move(usual)) {}

  void add(const TenantWork& work);
  /// Fills in heaviest and slowed, by the spike's operation and cause.
  void describe(model::LatencySpike& spike) const;

 private:
  UsualTenants usual_;
  TenantWork done_;
};

/// Whose device times tell who is slowed in a spike of this operation.
model::AttributedOperation told_by(model::SpikeOperation operation);

}  // namespace ssdpulse::analysis
