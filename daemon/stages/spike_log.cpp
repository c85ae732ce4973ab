// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/spike_log.h"

#include <tuple>
#include <utility>

namespace ssdpulse::stages {
namespace {

auto badness(const model::LatencySpike& spike) {
  return std::tuple(spike.excess_seconds, spike.peak_seconds, spike.duration);
}

}  // namespace

void SpikeLog::take(Told& told, model::LatencySpike spike) {
  told.suppressed += told.worst ? 1 : 0;
  if (!told.worst || badness(*told.worst) < badness(spike)) {
    told.worst = std::move(spike);
  }
}

std::vector<SpikeLog::Line> SpikeLog::observe(Time now, std::vector<model::LatencySpike> over,
                                              std::vector<model::LatencySpike> going_on) {
  std::vector<Line> lines;
  for (model::LatencySpike& spike : over) {
    Told& told = told_[{spike.device, spike.operation}];
    take(told, std::move(spike));
  }
  std::map<Key, bool> open;
  for (model::LatencySpike& spike : going_on) {
    const Key key{spike.device, spike.operation};
    open[key] = true;
    Told& told = told_[key];
    const bool due = told.goes_on_written ? now - *told.goes_on_written >= kAgain : spike.duration >= kLong;
    if (due) {
      told.goes_on_written = now;
      lines.push_back({std::move(spike), true});
    }
  }
  for (auto& [key, told] : told_) {
    if (told.worst && (!told.written || now - *told.written >= kInterval)) {
      lines.push_back({std::move(*told.worst), false, std::exchange(told.suppressed, 0)});
      told.worst.reset();
      told.written = now;
    }
    if (!open.contains(key)) {
      told.goes_on_written.reset();
    }
  }
  std::erase_if(told_, [&](const auto& entry) {
    return !entry.second.worst && !open.contains(entry.first) &&
           now - entry.second.written.value_or(Time{}) >= kInterval;
  });
  return lines;
}

}  // namespace ssdpulse::stages
