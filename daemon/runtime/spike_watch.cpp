// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/spike_watch.h"

#include <utility>

#include "daemon/runtime/history/history.h"
#include "daemon/util/log.h"
#include "daemon/util/utc_text.h"

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

void write(const SpikeLog::Line& line) {
  const model::LatencySpike& spike = line.spike;
  const std::chrono::duration<double> seconds = spike.duration;
  log::warning(
      "latency spike{} device={} operation={} cause={} begin={} seconds={:.3f} p99_seconds={:.6f} "
      "baseline_seconds={:.6f} excess_seconds={:.3f} ios={} evidence=\"{}\" missing=\"{}\" suppressed={}",
      line.goes_on ? " goes on" : "", spike.device, name(spike.operation, model::kSpikeOperationNames),
      name(spike.cause, model::kSpikeCauseNames), util::utc_text(spike.begin), seconds.count(), spike.peak_seconds,
      spike.baseline_seconds, spike.excess_seconds, spike.ios, model::evidence_text(spike), model::missing_text(spike),
      line.suppressed);
}

}  // namespace

void SpikeWatch::observe(model::Snapshot& snapshot, SteadyTime at, std::chrono::nanoseconds floor, NvmeMonitor& nvme) {
  const auto drives = drives_of(snapshot);
  std::map<std::string, analysis::DeviceSpikes> before = std::exchange(devices_, {});
  history::Batch batch;
  std::vector<model::LatencySpike> going_on;
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
      batch.spikes.push_back(std::move(spike));
    }
    for (model::LatencySpike& spike : spikes.going_on()) {
      going_on.push_back(std::move(spike));
    }
    device.spikes = spikes.figures();
    if (spikes.wants_logs()) {
      nvme.poll_soon(name);
    }
  }
  snapshot.spikes_ended = batch.spikes;
  snapshot.spikes_going_on = going_on;
  for (const SpikeLog::Line& line : log_.observe(at, batch.spikes, std::move(going_on))) {
    write(line);
  }
  if (!batch.spikes.empty() && nvme.history() != nullptr) {
    nvme.history()->add(std::move(batch));
  }
}

}  // namespace ssdpulse::runtime
