// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/spikes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "daemon/model/incarnation.h"
#include "daemon/util/utc_text.h"

namespace ssdpulse::stages {
namespace {

/// With its write amplification, which was computed a tick ago.
const model::NvmeDrive* drive_of(const DeviceTick& device, const Tick& tick) {
  if (!device.drive || !tick.before) {
    return device.drive.get();
  }
  const auto& drives = tick.before->nvme_drives;
  const auto found = std::find_if(drives.begin(), drives.end(), [&](const model::NvmeDrive& one) {
    return model::same_drive(*one.identity, *device.drive->identity);
  });
  return found == drives.end() ? device.drive.get() : &*found;
}

LogLine line_of(const SpikeLog::Line& line) {
  const model::LatencySpike& spike = line.spike;
  const std::chrono::duration<double> seconds = spike.duration;
  return {log::Level::info,
          fmt::format("latency spike{} device={} operation={} cause={} begin={} seconds={:.3f} p99_seconds={:.6f} "
                      "baseline_seconds={:.6f} excess_seconds={:.3f} ios={} evidence=\"{}\" missing=\"{}\" "
                      "suppressed={}",
                      line.goes_on ? " continues" : "", spike.device, name(spike.operation),
                      name(spike.cause, model::kSpikeCauseNames), util::utc_text(spike.begin), seconds.count(),
                      spike.peak_seconds, spike.baseline_seconds, spike.excess_seconds, spike.ios,
                      model::evidence_text(spike), model::missing_text(spike), line.suppressed)};
}

LogLine line_of(const IncidentLog::Line& line) {
  const model::Incident& incident = line.incident;
  const model::LatencySpike& spike = incident.headline();
  std::set<std::string> devices;
  std::set<std::string_view> operations;
  for (const model::LatencySpike& one : incident.spikes) {
    devices.insert(one.device);
    operations.insert(name(one.operation));
  }
  const std::chrono::duration<double> seconds = incident.end - incident.begin;
  const model::LatencySpike* named = incident.with_culprit();
  const model::SpikeTenant* victim = incident.victim();
  return {log::Level::warning,
          fmt::format("latency incident{} device={} operation={} cause={} begin={} seconds={:.3f} p99_seconds={:.6f} "
                      "baseline_seconds={:.6f} excess_seconds={:.3f} culprit=\"{}\" victim=\"{}\" devices=\"{}\" "
                      "operations=\"{}\"",
                      line.goes_on ? " continues" : "", spike.device, name(spike.operation),
                      name(spike.cause, model::kSpikeCauseNames), util::utc_text(incident.begin), seconds.count(),
                      spike.peak_seconds, spike.baseline_seconds, incident.excess_seconds(),
                      named == nullptr ? "" : model::culprit_of(*named)->name, victim == nullptr ? "" : victim->name,
                      fmt::join(devices, ","), fmt::join(operations, ","))};
}

}  // namespace

analysis::SpikeTick Spikes::spike_tick(const DeviceTick& device, Device& known, const Tick& tick) {
  analysis::SpikeTick seen;
  seen.at = tick.at;
  seen.wall = tick.wall;
  seen.interval = device.interval;
  seen.drive = drive_of(device, tick);
  seen.kernel_in_flight = device.kernel_in_flight;
  seen.floor_seconds = std::chrono::duration<double>(tick.settings.spike_floor).count();
  if (device.block.attribution && tick.tenants) {
    for (const auto& [name, tenant] : known.steps.observe(*device.block.attribution, *tick.tenants).tenants) {
      seen.tenants.emplace(name, tenant.done);
    }
  }
  return seen;
}

Findings Spikes::observe(const Tick& tick) {
  Findings findings;
  std::vector<analysis::DeviceSpikes::Figures> figures(tick.devices.size());
  std::vector<model::LatencySpike>& over = findings.effects.rows.spikes;
  std::vector<model::LatencySpike> going_on;
  std::vector<model::LatencySpike> unjudged;
  devices_.observe(tick, [&](std::size_t number, const DeviceTick& device, Device& known) {
    analysis::DeviceSpikes& spikes = known.spikes;
    for (model::LatencySpike& spike : spikes.observe(spike_tick(device, known, tick))) {
      over.push_back(std::move(spike));
    }
    going_on.insert(going_on.end(), spikes.going_on().begin(), spikes.going_on().end());
    unjudged.insert(unjudged.end(), spikes.unjudged().begin(), spikes.unjudged().end());
    figures[number] = spikes.figures();
    if (device.drive && spikes.wants_logs()) {
      findings.effects.poll_soon.push_back(device.drive->identity->controller);
    }
  });
  for (const SpikeLog::Line& line : log_.observe(tick.at, over, going_on)) {
    findings.effects.lines.push_back(line_of(line));
  }
  const model::DeviceGroups groups(tick.inventory ? tick.inventory->memberships : std::vector<model::Membership>{});
  for (const IncidentLog::Line& line : incident_log_.observe(tick.at, over, unjudged, going_on, groups)) {
    findings.effects.lines.push_back(line_of(line));
  }
  findings.values = [figures = std::move(figures), over, going_on = std::move(going_on),
                     unjudged = std::move(unjudged)](model::Snapshot& snapshot) {
    snapshot.spikes_ended = over;
    snapshot.spikes_going_on = going_on;
    snapshot.spikes_unjudged = unjudged;
    for (std::size_t i = 0; i < figures.size(); ++i) {
      snapshot.devices[i].spikes = figures[i];
    }
  };
  return findings;
}

}  // namespace ssdpulse::stages
