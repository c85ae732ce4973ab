// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/spike_watch.h"

#include <utility>

#include "daemon/runtime/history/history.h"

namespace ssdpulse::runtime {
namespace {

/// By the names of their namespaces' devices.
std::map<std::string, const model::NvmeDrive*> drives_of(const model::Snapshot& snapshot) {
  std::map<std::string, const model::NvmeDrive*> drives;
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    for (const model::NvmeNamespace& entry : drive.identity->namespaces) {
      drives[entry.device] = &drive;
    }
  }
  return drives;
}

}  // namespace

void SpikeWatch::observe(model::Snapshot& snapshot, SteadyTime at, std::chrono::nanoseconds floor, NvmeMonitor& nvme) {
  const auto drives = drives_of(snapshot);
  std::map<std::string, analysis::DeviceSpikes> before = std::exchange(devices_, {});
  history::Batch batch;
  for (model::DeviceSnapshot& device : snapshot.devices) {
    const std::string& name = device.device->name;
    const auto known = before.find(name);
    auto& spikes = known != before.end() ? devices_.insert(before.extract(known)).position->second
                                         : devices_.try_emplace(name, name).first->second;
    analysis::SpikeTick tick;
    tick.at = at;
    tick.wall = snapshot.taken_at;
    tick.io = device.io;
    const auto drive = drives.find(name);
    tick.drive = drive == drives.end() ? nullptr : drive->second;
    tick.kernel_in_flight = device.kernel_in_flight;
    tick.floor_seconds = std::chrono::duration<double>(floor).count();
    for (model::LatencySpike& spike : spikes.observe(tick)) {
      tell(spike);
      batch.spikes.push_back(std::move(spike));
    }
    device.spikes = spikes.figures();
    if (spikes.wants_logs()) {
      nvme.poll_soon(name);
    }
  }
  if (!batch.spikes.empty() && nvme.history() != nullptr) {
    nvme.history()->add(std::move(batch));
  }
}

void SpikeWatch::tell(const model::LatencySpike& spike) {
  const auto operation = name(spike.operation, model::kSpikeOperationNames);
  const auto suppressed = limiter_.admit(spike.device + ' ' + std::string(operation));
  if (!suppressed) {
    return;
  }
  const std::chrono::duration<double> begin = spike.begin.time_since_epoch();
  const std::chrono::duration<double> seconds = spike.duration;
  log::warning(
      "latency spike device={} operation={} cause={} begin={:.3f} seconds={:.3f} p99_seconds={:.6f} "
      "baseline_seconds={:.6f} ios={} evidence=\"{}\" missing=\"{}\" suppressed={}",
      spike.device, operation, name(spike.cause, model::kSpikeCauseNames), begin.count(), seconds.count(),
      spike.peak_seconds, spike.baseline_seconds, spike.ios, model::evidence_text(spike), model::missing_text(spike),
      *suppressed);
}

}  // namespace ssdpulse::runtime
