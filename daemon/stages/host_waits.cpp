// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/host_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/model/incidents.h"
#include "daemon/util/outside_text.h"
#include "daemon/util/utc_text.h"

namespace ssdpulse::stages {
namespace {

using log::field;
using log::quoted;
using Seconds = std::chrono::duration<double>;

std::string evidence_of(const model::HostWait& wait) {
  std::string evidence;
  for (const auto& [name, value] : wait.evidence) {
    evidence += fmt::format("{}{}={:.6g}", evidence.empty() ? "" : " ", name, value);
  }
  if (!wait.command.empty()) {
    std::string command = util::for_log(wait.command);
    std::replace(command.begin(), command.end(), ' ', '_');
    evidence += fmt::format("{}{}={}", evidence.empty() ? "" : " ", model::kWaitCommand, command);
  }
  return evidence;
}

model::PastWait row_of(const model::HostWait& wait) {
  return {wait.begin,        std::string(name(wait.cause, model::kHostWaitCauseNames)),
          wait.subject,      wait.device,
          wait.tenant,       Seconds(wait.duration).count(),
          evidence_of(wait), wait.file};
}

log::Line line_of(const model::HostWait& wait) {
  return log::line(log::Level::warning, "I/O held up{}", wait.over ? " until now" : "",
                   field("cause", name(wait.cause, model::kHostWaitCauseNames)),
                   quoted("subject", util::for_log(wait.subject)), field("device", wait.device),
                   field("tenant", wait.tenant), field("begin", util::utc_text(wait.begin)),
                   wait.over ? field("seconds", "{:.3f}", Seconds(wait.duration).count()) : log::Field{},
                   quoted("evidence", evidence_of(wait)), field("source", wait.file));
}

}  // namespace

/// At least the share of the time in which any I/O was in flight, by the kernel's account or by ours: what all took is
/// added up, as none is known to overlap.
double HostWaits::in_flight_ratio(const Tick& tick) {
  const double interval = before_ ? Seconds(tick.at - *before_).count() : 0;
  before_ = tick.at;
  std::map<std::string, Device> before = std::exchange(devices_, {});
  double ours = 0;
  for (const DeviceTick& device : tick.devices) {
    Device& now = devices_[device.block.device->name];
    const Device& was = before[device.block.device->name];
    if (!device.block.io) {
      ours += 1;  // not measured: it may be busy
      continue;
    }
    for (std::size_t i = 0; i < model::kOperations; ++i) {
      const model::OperationIo& io = device.block.io->operations[i];
      const auto device_ns = std::accumulate(io.device_latency.begin(), io.device_latency.end(), std::uint64_t{0},
                                             [](std::uint64_t sum, const auto& one) { return sum + one.sum_ns; });
      now[i] = {std::max(device_ns, io.total_latency.sum_ns), io.completions};
      const bool stands_still = io.in_flight > 0 && now[i].completions == was[i].completions;
      const std::uint64_t busy_ns = now[i].busy_ns - std::min(now[i].busy_ns, was[i].busy_ns);
      ours += stands_still ? 1 : interval > 0 ? static_cast<double>(busy_ns) / 1e9 / interval : 0;
    }
  }
  const double disks = tick.host->disks_busy_seconds;
  const double theirs = disks - std::exchange(disks_busy_seconds_, disks);
  return std::max(ours, interval > 0 ? theirs / interval : 0);
}

/// Pressure of several cgroups overlaps: in each second, that of the one that waited longest counts.
void HostWaits::add_tenants(const Tick& tick) {
  std::map<util::OutsideText, double> before = std::exchange(cgroup_seconds_, {});
  std::map<std::string, double> totals = std::exchange(tenant_seconds_, {});
  std::map<std::string, double> more;
  for (const model::CgroupPressure& one : tick.host->cgroups) {
    cgroup_seconds_[one.cgroup] = one.pressure.some_seconds;
    const auto was = before.find(one.cgroup);
    const double grown = was == before.end() ? 0 : std::max(0.0, one.pressure.some_seconds - was->second);
    more[one.tenant] = std::max(more[one.tenant], grown);
  }
  for (const auto& [tenant, seconds] : more) {
    tenant_seconds_[tenant] = totals[tenant] + seconds;
  }
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
    const std::string key = fmt::format("{} {} {}", static_cast<int>(wait.cause), wait.subject.raw(), wait.device);
    if (wait.over) {
      seconds_[index(wait.cause)] += Seconds(wait.duration).count();
      findings.effects.lines.push_back(line_of(wait));
      findings.effects.rows.waits.push_back(row_of(wait));
      continue;
    }
    if (!before.contains(key)) {
      ++count_[index(wait.cause)];
      findings.effects.lines.push_back(line_of(wait));
    }
    logged_.emplace(key, wait.begin);
    if (tick.last) {
      findings.effects.rows.waits.push_back(row_of(wait));  // its end will not be seen
    }
  }
  add_tenants(tick);
  model::HostFigures figures{tick.host, waits,           count_,
                             seconds_,  tenant_seconds_, room_trend_.observe(tick.host->rooms, tick.at)};
  for (const model::HostWait& wait : waits) {
    if (!wait.over) {
      figures.seconds[index(wait.cause)] += Seconds(wait.duration).count();
    }
  }
  findings.values = [figures = std::move(figures)](model::Snapshot& snapshot) { snapshot.host = figures; };
  return findings;
}

}  // namespace ssdpulse::stages
