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

}  // namespace ssdpulse::stages
