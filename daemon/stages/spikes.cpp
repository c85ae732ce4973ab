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

using log::field;
using log::quoted;

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

log::Line line_of(const SpikeLog::Line& line) {
  const model::LatencySpike& spike = line.spike;
  const std::chrono::duration<double> seconds = spike.duration;
  return log::line(
      log::Level::info, "latency spike{}", line.goes_on ? " continues" : "", field("device", spike.device),
      field("operation", name(spike.operation)), field("cause", name(spike.cause, model::kSpikeCauseNames)),
      field("begin", util::utc_text(spike.begin)), field("seconds", "{:.3f}", seconds.count()),
      field("p99_seconds", "{:.6f}", spike.peak_seconds), field("baseline_seconds", "{:.6f}", spike.baseline_seconds),
      field("excess_seconds", "{:.3f}", spike.excess_seconds), field("ios", spike.ios),
      quoted("evidence", model::evidence_text(spike)), quoted("missing", model::missing_text(spike)),
      field("suppressed", line.suppressed));
}

log::Line line_of(const IncidentLog::Line& line) {
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
  return log::line(
      log::Level::warning, "latency incident{}", line.goes_on ? " continues" : "", field("device", spike.device),
      field("operation", name(spike.operation)), field("cause", name(spike.cause, model::kSpikeCauseNames)),
      field("begin", util::utc_text(incident.begin)), field("seconds", "{:.3f}", seconds.count()),
      field("p99_seconds", "{:.6f}", spike.peak_seconds), field("baseline_seconds", "{:.6f}", spike.baseline_seconds),
      field("excess_seconds", "{:.3f}", incident.excess_seconds()),
      quoted("culprit", named == nullptr ? "" : model::culprit_of(*named)->name),
      quoted("victim", victim == nullptr ? "" : victim->name), quoted("devices", fmt::join(devices, ",")),
      quoted("operations", fmt::join(operations, ",")));
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
