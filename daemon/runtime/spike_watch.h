// SPDX-License-Identifier: Apache-2.0
// SpikeWatch: the host's latency spikes. One analysis per device, fed with every Snapshot before it is published. Each
// spike becomes a row of the history and counters, and most become a log line. Owned by the sampling thread.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "daemon/analysis/latency_spikes/device_spikes.h"
#include "daemon/model/snapshot.h"
#include "daemon/runtime/nvme/monitor.h"
#include "daemon/runtime/spike_log.h"

namespace ssdpulse::runtime {

class SpikeWatch {
 public:
  /// Completes the Snapshot, which was taken at `at`; asks for the logs of drives whose spikes need them.
  void observe(model::Snapshot& snapshot, SteadyTime at, std::chrono::nanoseconds floor, NvmeMonitor& nvme);

 private:
  std::map<std::string, analysis::DeviceSpikes> devices_;
  SpikeLog log_;
};

}  // namespace ssdpulse::runtime
