// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/incident_log.h"

#include <algorithm>

namespace ssdpulse::stages {
namespace {

bool is_one(const model::LatencySpike& a, const model::LatencySpike& b) {
  return a.device == b.device && a.operation == b.operation && a.begin == b.begin;
}

}  // namespace

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
                         [&](const model::LatencySpike& spike) { return is_one(spike, one); });
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

}  // namespace ssdpulse::stages
