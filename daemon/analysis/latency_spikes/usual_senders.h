// SPDX-License-Identifier: Apache-2.0
// UsualSenders: who sends a device its reads and writes when nothing is wrong, and how much of each. It tells load that
// somebody else brings from load that those bring who wait for the I/Os. Averages over the last minutes of windows in
// which nothing was slow; the caller makes sure of that. Pure, and bounded by the number of tenants at a time.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "daemon/analysis/latency_spikes/spike_tenants.h"
#include "daemon/model/attribution.h"

namespace ssdpulse::analysis {

class UsualSenders {
 public:
  static constexpr double kSeconds = 120;    // time constant
  static constexpr double kMinShare = 0.05;  // of the operation's I/Os: with less, a tenant is not one of its senders
  static constexpr std::size_t kMaxTenants = 2048;  // tenants

  void learn(const TenantWork& work, double seconds);

  /// Reads or writes, whichever is higher, of those who usually send this operation, relative to what they usually
  /// send: in I/Os or in bytes. Absent if it is not known who sends most of its `usual_rate` I/Os per second.
  [[nodiscard]] std::optional<double> load(model::Operation operation, double usual_rate, const TenantWork& work,
                                           double seconds) const;

 private:
  struct Rate {
    double ios = 0;  // per second, as bytes
    double bytes = 0;
  };
  using Rates = std::array<Rate, 2>;  // reads, writes

  double weight_ = 0;
  std::map<std::string, Rates> tenants_;
};

}  // namespace ssdpulse::analysis
