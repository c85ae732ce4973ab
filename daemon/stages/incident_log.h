// SPDX-License-Identifier: Apache-2.0
// IncidentLog: which incidents are logged, and when.
//
// One line for each, once all its spikes are judged and none has followed for model::kIncidentGap. An ongoing one is
// logged after kReportAfter, and then every kRepeatInterval. Only decides what to write. Not thread-safe.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/model/incidents.h"

namespace ssdpulse::stages {

class IncidentLog {
 public:
  static constexpr std::chrono::seconds kReportAfter{10};
  static constexpr std::chrono::seconds kRepeatInterval{60};
  static constexpr std::size_t kMaxPending =
      512;  // spikes; beyond it, the oldest are left out of their incident's line
  using Time = std::chrono::steady_clock::time_point;

  struct Line {
    model::Incident incident;
    bool goes_on = false;
  };

  /// `over`: spikes whose cause became final since the last call; `unjudged` and `going_on`: all of these.
  std::vector<Line> observe(Time now, const std::vector<model::LatencySpike>& over,
                            const std::vector<model::LatencySpike>& unjudged,
                            const std::vector<model::LatencySpike>& going_on, const model::DeviceGroups& groups);

 private:
  std::vector<std::pair<model::LatencySpike, Time>> pending_;  // with the time at which each became final
  std::map<std::string, Time> goes_on_written_;                // by the group of devices of an ongoing incident
};

}  // namespace ssdpulse::stages
