// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/spike_stage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "daemon/base/number_text.h"
#include "daemon/model/device_identity.h"

namespace ssdpulse::spikes {
namespace {

using log::field;
using log::quoted;

auto badness(const model::LatencySpike& spike) {
  return std::tuple(spike.excess_seconds, spike.peak_seconds, spike.duration);
}

bool is_same(const model::LatencySpike& a, const model::LatencySpike& b) {
  return a.device == b.device && a.operation == b.operation && a.begin == b.begin;
}

/// With its write amplification, which was computed a tick ago.
const model::NvmeDrive* drive_of(const model::DeviceTick& device, const model::Tick& tick) {
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

void SpikeLog::take(LogState& state, model::LatencySpike spike) {
  state.suppressed += state.worst ? 1 : 0;
  if (!state.worst || badness(*state.worst) < badness(spike)) {
    state.worst = std::move(spike);
  }
}

std::vector<SpikeLog::Line> SpikeLog::observe(Time now, std::vector<model::LatencySpike> over,
                                              std::vector<model::LatencySpike> going_on) {
  std::vector<Line> lines;
  for (model::LatencySpike& spike : over) {
    LogState& state = log_states_[{spike.device, spike.operation}];
    take(state, std::move(spike));
  }
  std::map<Key, bool> open;
  for (model::LatencySpike& spike : going_on) {
    const Key key{spike.device, spike.operation};
    open[key] = true;
    LogState& state = log_states_[key];
    const bool due =
        state.goes_on_written ? now - *state.goes_on_written >= kRepeatInterval : spike.duration >= kReportAfter;
    if (due) {
      state.goes_on_written = now;
      lines.push_back({std::move(spike), true});
    }
  }
  for (auto& [key, state] : log_states_) {
    if (state.worst && (!state.written || now - *state.written >= kInterval)) {
      lines.push_back({std::move(*state.worst), false, std::exchange(state.suppressed, 0)});
      state.worst.reset();
      state.written = now;
    }
    if (!open.contains(key)) {
      state.goes_on_written.reset();
    }
  }
  std::erase_if(log_states_, [&](const auto& entry) {
    return !entry.second.worst && !open.contains(entry.first) &&
           now - entry.second.written.value_or(Time{}) >= kInterval;
  });
  return lines;
}

std::vector<IncidentLog::Line> IncidentLog::observe(Time now, const std::vector<model::LatencySpike>& over,
                                                    const std::vector<model::LatencySpike>& unjudged,
                                                    const std::vector<model::LatencySpike>& going_on,
                                                    const model::DeviceGroups& groups) {
  for (const model::LatencySpike& spike : over) {
    if (model::is_harmful(spike)) {
      pending_.emplace_back(spike, now);
    }
  }
  if (pending_.size() > kMaxPending) {
    pending_.erase(pending_.begin(), pending_.end() - static_cast<std::ptrdiff_t>(kMaxPending));
  }
  std::vector<Line> lines;
  if (pending_.empty() && going_on.empty()) {
    goes_on_written_.clear();
    return lines;
  }
  std::vector<model::LatencySpike> final;
  for (const auto& [spike, at] : pending_) {
    final.push_back(spike);
  }
  std::vector<model::LatencySpike> not_final = unjudged;
  not_final.insert(not_final.end(), going_on.begin(), going_on.end());
  std::map<std::string, Time> still;
  for (model::Incident& incident : model::incidents_of(final, not_final, groups)) {
    const std::string group = groups.of(incident.headline().device);
    const auto belongs = [&](const auto& one) {
      return std::any_of(incident.spikes.begin(), incident.spikes.end(),
                         [&](const model::LatencySpike& spike) { return is_same(spike, one); });
    };
    if (std::any_of(going_on.begin(), going_on.end(), belongs)) {
      const auto written = goes_on_written_.find(group);
      const bool due = written == goes_on_written_.end() ? incident.end - incident.begin >= kReportAfter
                                                         : now - written->second >= kRepeatInterval;
      if (due || written != goes_on_written_.end()) {
        still[group] = due ? now : written->second;
      }
      if (due) {
        lines.push_back({std::move(incident), true});
      }
      continue;
    }
    // Between two spikes of one incident it goes on, though no spike does.
    if (const auto written = goes_on_written_.find(group); written != goes_on_written_.end()) {
      still.emplace(group, written->second);
    }
    const bool quiet = !incident.going_on && std::all_of(pending_.begin(), pending_.end(), [&](const auto& one) {
      return !belongs(one.first) || now - one.second >= model::kIncidentGap;
    });
    if (quiet) {
      std::erase_if(pending_, [&](const auto& one) { return belongs(one.first); });
      still.erase(group);
      lines.push_back({std::move(incident), false});
    }
  }
  goes_on_written_ = std::move(still);
  return lines;
}

SpikeTick Spikes::spike_tick(const model::DeviceTick& device, Device& known, const model::Tick& tick) {
  SpikeTick seen;
  seen.at = tick.at;
  seen.wall = tick.wall;
  seen.interval = device.interval;
  seen.drive = drive_of(device, tick);
  seen.kernel_in_flight = device.kernel_in_flight;
  seen.floor_seconds = std::chrono::duration<double>(tick.settings.spike_floor).count();
  if (device.block.attribution && tick.tenants) {
    for (const auto& [name, tenant] : known.steps.observe(*device.block.attribution, *tick.tenants).tenants) {
      seen.tenants.emplace_hint(seen.tenants.end(), name, tenant.done);
    }
  }
  return seen;
}

model::Findings Spikes::observe(const model::Tick& tick) {
  model::Findings findings;
  std::vector<DeviceSpikes::Figures> figures(tick.devices.size());
  std::vector<model::LatencySpike>& over = findings.effects.rows.spikes;
  std::vector<model::LatencySpike> going_on;
  std::vector<model::LatencySpike> unjudged;
  devices_.observe(tick, [&](std::size_t number, const model::DeviceTick& device, Device& known) {
    DeviceSpikes& spikes = known.spikes;
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

}  // namespace ssdpulse::spikes
