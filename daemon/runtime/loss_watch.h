// SPDX-License-Identifier: Apache-2.0
// LossWatch: logs when ssdpulse is losing I/Os; Prometheus has the counters. Owned by the sampling thread.
#pragma once

#include <map>
#include <string>

#include "daemon/analysis/recent_losses.h"
#include "daemon/model/snapshot.h"
#include "daemon/util/log.h"

namespace ssdpulse::runtime {

class LossWatch {
 public:
  void observe(const model::Snapshot& snapshot, analysis::RecentLosses::Time at);

 private:
  std::map<std::string, analysis::RecentLosses> devices_;
  log::Limiter limiter_{std::chrono::minutes(10)};
};

}  // namespace ssdpulse::runtime
