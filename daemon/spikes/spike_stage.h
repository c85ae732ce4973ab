// SPDX-License-Identifier: Apache-2.0
// Spikes: the stage that finds latency spikes, with one analysis for each device. SpikeLog and IncidentLog decide which
// spikes and incidents are logged, and when. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/model/incident.h"
#include "daemon/model/latency_spike.h"
#include "daemon/model/stage.h"
#include "daemon/model/tenant_steps.h"
#include "daemon/spikes/device_spikes.h"

namespace ssdpulse::spikes {

/// One line per kInterval for each device and operation. Of several that end in between, the worst, with the longest
/// excess waiting, is kept and logged when the interval is over. An ongoing one is logged after kReportAfter, and then
/// every kRepeatInterval.
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

/// One line for each incident, once all its spikes are judged and none has followed for model::kIncidentGap. An ongoing
/// one is logged after kReportAfter, and then every kRepeatInterval.
class IncidentLog {
 public:
  static constexpr std::chrono::seconds kReportAfter{10};
  static constexpr std::chrono::seconds kRepeatInterval{60};
  static constexpr std::size_t kMaxPending = 512;  // spikes; the oldest others are left out of their incident's line
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

/// Each spike becomes a history row and counters, each incident a line of the log, with most of its spikes as details;
/// a drive whose log pages would show the cause is polled early.
class Spikes final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  struct Device {
    explicit Device(std::string name) : spikes(std::move(name)) {}
    DeviceSpikes spikes;
    model::TenantSteps steps;
  };
  static SpikeTick spike_tick(const model::DeviceTick& device, Device& known, const model::Tick& tick);

  model::PerDevice<Device> devices_;
  IncidentLog incident_log_;
  SpikeLog log_;
};

}  // namespace ssdpulse::spikes
