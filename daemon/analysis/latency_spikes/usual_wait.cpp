// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/usual_wait.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::analysis {

void UsualWait::learn(const OperationInterval& window, double seconds, double limit) {
  const auto all = static_cast<double>(window.total.count());
  const auto slow = static_cast<double>(count_above(window.total.words, limit));
  const double slow_waited = excess_above(window.total.words, limit, 0);
  if (all <= slow) {
    return;
  }
  const double past = std::exp(-seconds / kSeconds);
  ios_ = past * ios_ + all - slow;
  waited_ = past * waited_ + std::max(0.0, seconds_of(window.total.sum_ns) - slow_waited);
}

std::optional<double> UsualWait::seconds() const { return ios_ > 0 ? std::optional(waited_ / ios_) : std::nullopt; }

}  // namespace ssdpulse::analysis
