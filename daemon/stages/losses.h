// SPDX-License-Identifier: Apache-2.0
// Losses: the stage that logs when ssdpulse is losing I/Os, for people who read the log; Prometheus has the counters.
#pragma once

#include "daemon/analysis/recent_losses.h"
#include "daemon/stages/per_device.h"
#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class Losses final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  PerDevice<analysis::RecentLosses> devices_;
  log::Limiter limiter_{std::chrono::minutes(10)};
};

}  // namespace ssdpulse::stages
