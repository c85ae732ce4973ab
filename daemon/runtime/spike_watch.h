// SPDX-License-Identifier: Apache-2.0
// Which latency spikes does the host have? One analysis for each device, fed with every Snapshot before it is
// published. Each spike becomes a row of the history and counters, and most a line of the log. Owned by the sampling
// thread.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "daemon/analysis/latency_spikes/device_spikes.h"
#include "daemon/drives/monitor.h"
#include "daemon/model/snapshot.h"
#include "daemon/runtime/spike_log.h"

namespace ssdpulse::runtime {

class SpikeWatch {
 public:
  /// Completes the Snapshot, which was taken at `at`; asks for the logs of drives whose spikes need them.
  void observe(model::Snapshot& snapshot, drives::SteadyTime at, std::chrono::nanoseconds floor,
               drives::DriveMonitor& nvme);

 private:
  std::map<std::string, analysis::DeviceSpikes> devices_;
  SpikeLog log_;
};

}  // namespace ssdpulse::runtime
