// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/usual_load.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::analysis {

void UsualLoad::learn(const IoWindow& window) {
  if (window.ios() == 0) {
    return;
  }
  const double seconds = window.seconds();
  const double part = std::max(1 - std::exp(-seconds / kSeconds), seconds / (weight_ + seconds));
  const auto towards = [part](double& value, double now) { value += part * (now - value); };
  weight_ = std::min(weight_ + seconds, kSeconds);
  towards(ios_, static_cast<double>(window.ios()) / seconds);
  towards(bytes_, static_cast<double>(window.bytes()) / seconds);
  const auto interference = [&](UsualInterference& usual, const OperationInterval& now) {
    towards(usual.per_second, static_cast<double>(now.issues) / seconds);
    towards(usual.depth, seconds_of(now.device_ns()) / seconds);
  };
  interference(discards_, window.operation(model::Operation::discard));
  interference(flushes_, window.operation(model::Operation::flush));
  for (const model::Operation which : model::kSpikeOperations) {
    const OperationInterval& now = window.operation(which);
    UsualOperation& usual = operations_[which];
    towards(usual.depth, seconds_of(now.device_ns()) / seconds);
    towards(usual.ios_per_second, static_cast<double>(now.ios) / seconds);
    towards(usual.bytes_per_second, static_cast<double>(now.bytes) / seconds);
    towards(usual.queue_full_share, std::min(seconds_of(now.queue_full_ns) / seconds, 1.0));
  }
}

}  // namespace ssdpulse::analysis
