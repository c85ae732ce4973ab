// SPDX-License-Identifier: Apache-2.0
// SpikeLog: which latency spikes are logged, and when.
//
// One line per kInterval for each device and operation. Of several that end in between, the worst, with the longest
// excess waiting, is kept and logged when the interval is over. An ongoing one is logged after kReportAfter, and then
// every kRepeatInterval. Only decides what to write. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/spikes.h"

namespace ssdpulse::stages {

class SpikeLog {
 public:
  static constexpr std::chrono::seconds kInterval{10};
  static constexpr std::chrono::seconds kReportAfter{10};
  static constexpr std::chrono::seconds kRepeatInterval{60};
  using Time = std::chrono::steady_clock::time_point;

  struct Line {
    model::LatencySpike spike;
    bool goes_on = false;
    std::uint64_t suppressed = 0;  // those that ended without a line
  };

  /// Those that ended since the last call, and all that are ongoing.
  std::vector<Line> observe(Time now, std::vector<model::LatencySpike> over, std::vector<model::LatencySpike> going_on);

 private:
  struct Key {
    std::string device;
    model::Operation operation;
    auto operator<=>(const Key&) const = default;
  };
  struct LogState {
    std::optional<Time> written;  // the last line of one that was over
    std::optional<model::LatencySpike> worst;
    std::uint64_t suppressed = 0;
    std::optional<Time> goes_on_written;
  };
  void take(LogState& state, model::LatencySpike spike);

  std::map<Key, LogState> log_states_;
};

}  // namespace ssdpulse::stages
