// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/host_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/model/incidents.h"
#include "daemon/util/utc_text.h"

namespace ssdpulse::stages {
namespace {

using Seconds = std::chrono::duration<double>;

std::string evidence_of(const model::HostWait& wait) {
  std::string evidence;
  for (const auto& [name, value] : wait.evidence) {
    evidence += fmt::format("{}{}={:.6g}", evidence.empty() ? "" : " ", name, value);
  }
  return evidence;
}

LogLine line_of(const model::HostWait& wait) {
  const double seconds = wait.end ? Seconds(*wait.end - wait.begin).count() : 0;
  return {log::Level::warning,
          fmt::format("I/O held up{} cause={} subject=\"{}\" device={} tenant={} begin={}{} evidence=\"{}\" source={}",
                      wait.end ? " until now" : "", name(wait.cause, model::kHostWaitCauseNames), wait.subject,
                      wait.device, wait.tenant, util::utc_text(wait.begin),
                      wait.end ? fmt::format(" seconds={:.3f}", seconds) : "", evidence_of(wait), wait.file)};
}

}  // namespace

/// At least the share of the time in which any I/O was in flight: the sum of what all took, as none is known to
/// overlap.
double HostWaits::in_flight_ratio(const Tick& tick) {
  const double interval = before_ ? Seconds(tick.at - *before_).count() : 0;
  before_ = tick.at;
  std::map<std::string, Device> before = std::exchange(devices_, {});
  const double others = tick.host->other_disks_busy_seconds;
  const double more = others - std::exchange(other_disks_seconds_, others);
  double ratio = interval > 0 && more > 0 ? more / interval : 0;
  for (const DeviceTick& device : tick.devices) {
    if (!device.block.io) {
      continue;
    }
    Device now;
    std::int64_t in_flight = 0;
    for (const model::OperationIo& io : device.block.io->operations) {
      const auto device_ns = std::accumulate(io.device_latency.begin(), io.device_latency.end(), std::uint64_t{0},
                                             [](std::uint64_t sum, const auto& one) { return sum + one.sum_ns; });
      now.busy_ns += std::max(device_ns, io.total_latency.sum_ns);
      now.completions += io.completions;
      in_flight += io.in_flight;
    }
    const auto was = before.find(device.block.device->name);
    if (was != before.end() && interval > 0 && now.busy_ns >= was->second.busy_ns) {
      const double busy = static_cast<double>(now.busy_ns - was->second.busy_ns) / 1e9 / interval;
      const bool stands_still = in_flight > 0 && now.completions == was->second.completions;
      ratio += stands_still ? 1 : busy;
    }
    devices_.emplace(device.block.device->name, now);
  }
  return ratio;
}

Findings HostWaits::observe(const Tick& tick) {
  Findings findings;
  if (!tick.host) {
    return findings;
  }
  analysis::HostWaits::Second second{tick.at, tick.wall, tick.host.get(), in_flight_ratio(tick)};
  if (tick.before) {
    for (const model::LatencySpike& spike : tick.before->spikes_going_on) {
      if (model::is_harmful(spike)) {
        second.slow_devices.insert(spike.device);
      }
    }
  }
  std::vector<model::HostWait> waits = waits_.observe(second);
  std::map<std::string, model::WallTime> before = std::exchange(logged_, {});
  for (const model::HostWait& wait : waits) {
    const std::string key = fmt::format("{} {} {}", static_cast<int>(wait.cause), wait.subject, wait.device);
    if (wait.end) {
      seconds_[index(wait.cause)] += Seconds(*wait.end - wait.begin).count();
      findings.effects.lines.push_back(line_of(wait));
      findings.effects.rows.waits.push_back({wait.begin, std::string(name(wait.cause, model::kHostWaitCauseNames)),
                                             wait.subject, wait.device, wait.tenant,
                                             Seconds(*wait.end - wait.begin).count(), evidence_of(wait), wait.file});
      continue;
    }
    if (!before.contains(key)) {
      ++count_[index(wait.cause)];
      findings.effects.lines.push_back(line_of(wait));
    }
    logged_.emplace(key, wait.begin);
  }
  model::HostFigures figures{tick.host, waits, waits_.pressure_ratio(), count_, seconds_};
  for (const model::HostWait& wait : waits) {
    if (!wait.end) {
      figures.seconds[index(wait.cause)] += Seconds(tick.wall - wait.begin).count();
    }
  }
  findings.values = [figures = std::move(figures)](model::Snapshot& snapshot) { snapshot.host = figures; };
  return findings;
}

}  // namespace ssdpulse::stages
