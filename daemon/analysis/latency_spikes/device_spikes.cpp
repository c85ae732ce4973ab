// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/device_spikes.h"

#include <algorithm>
#include <utility>

namespace ssdpulse::analysis {

std::vector<model::LatencySpike> DeviceSpikes::observe(const SpikeTick& tick) {
  has_drive_ = tick.drive != nullptr;
  drive_up_ = has_drive_ && tick.drive->polling.up;
  if (has_drive_) {
    readings_.observe(*tick.drive, !any_open());
  }
  if (tick.io && last_io_) {
    if (tick.io->since != last_io_->since) {
      // Another device under this name, or the same one from the start: what was learned was of the other.
      *this = DeviceSpikes(std::move(device_));
    } else if (const auto window = window_between(*last_io_, last_at_, *tick.io, tick.at)) {
      take_window(*window, tick);
    }
  }
  last_io_ = tick.io;
  last_at_ = tick.at;
  return finish(tick.at);
}

bool DeviceSpikes::any_open() const {
  return std::any_of(channels_.begin(), channels_.end(), [](const Channel& channel) { return channel.open; });
}

void DeviceSpikes::take_window(const IoWindow& window, const SpikeTick& tick) {
  recent_.push_back(window);
  for (std::size_t operation = 0; operation < channels_.size(); ++operation) {
    Channel& channel = channels_[operation];
    const auto event =
        channel.detector.observe(window.begin, window.end, window.operations[operation], tick.floor_seconds);
    if (event == SpikeDetector::Event::began) {
      open(channel, operation, tick);
    } else if (channel.open) {
      channel.open->span = *channel.detector.span();
      if (window.begin < channel.open->span.ended) {
        channel.open->tally.add(window, channel.open->usual);
      }
    }
    if (event == SpikeDetector::Event::ended) {
      last_spike_end_ = std::max(last_spike_end_, channel.open->span.ended);
      waiting_.push_back(std::move(*channel.open));
      channel.open.reset();
    }
  }
  while (recent_.size() > kRecent) {
    learn_usual();
    recent_.pop_front();
  }
}

void DeviceSpikes::open(Channel& channel, std::size_t operation, const SpikeTick& tick) {
  const SpikeSpan& span = *channel.detector.span();
  const auto age = std::chrono::duration_cast<model::WallTime::duration>(tick.at - span.began);
  channel.open = Waiting{operation, span, tick.wall - age, SpikeTally(operation, span.limit), usual_};
  for (const IoWindow& window : recent_) {
    if (window.end > span.began) {
      channel.open->tally.add(window, channel.open->usual);
    }
  }
}

/// A window counts as usual once no spike has claimed it.
void DeviceSpikes::learn_usual() {
  const IoWindow& oldest = recent_.front();
  if (!any_open() && oldest.begin >= last_spike_end_) {
    usual_.learn(oldest);
  }
}

CauseVerdict DeviceSpikes::judge(const Waiting& spike, SteadyTime ended) const {
  if (!has_drive_) {
    return find_cause(spike.tally, spike.usual, nullptr);
  }
  const DriveVerdict drive = readings_.judge(spike.span.began, ended);
  return find_cause(spike.tally, spike.usual, &drive);
}

std::vector<model::LatencySpike> DeviceSpikes::finish(SteadyTime now) {
  wants_logs_ = false;
  for (std::size_t operation = 0; operation < channels_.size(); ++operation) {
    Channel& channel = channels_[operation];
    figures_[operation].active.reset();
    if (channel.open) {
      const CauseVerdict verdict = judge(*channel.open, now);
      figures_[operation].active = verdict.cause;
      // Once while it goes on, and once after its end: not all the time.
      const DriveVerdict since = readings_.judge(channel.open->span.began, channel.open->span.began);
      wants_logs_ = wants_logs_ || (has_drive_ && !verdict.host_side && !since.complete);
    }
  }
  std::vector<model::LatencySpike> finished;
  std::deque<Waiting> still;
  for (std::size_t place = 0; place < waiting_.size(); ++place) {
    Waiting& spike = waiting_[place];
    CauseVerdict verdict = judge(spike, spike.span.ended);
    const bool complete = !has_drive_ || readings_.judge(spike.span.began, spike.span.ended).complete;
    const bool too_long = !drive_up_ || seconds_between(spike.span.ended, now) > kWaitForLogsSeconds;
    if (verdict.host_side || complete || too_long || waiting_.size() - place > kMostWaiting) {
      if (!complete && !verdict.host_side) {
        verdict.missing.emplace_back("no log page was read after the spike");
      }
      finished.push_back(close(spike, std::move(verdict)));
    } else {
      wants_logs_ = true;
      still.push_back(std::move(spike));
    }
  }
  waiting_ = std::move(still);
  return finished;
}

model::LatencySpike DeviceSpikes::close(const Waiting& spike, CauseVerdict verdict) {
  model::LatencySpike done;
  done.device = device_;
  done.operation = model::kSpikeOperations[spike.operation];
  done.begin = spike.begin;
  done.duration = spike.span.ended - spike.span.began;
  done.peak_seconds = spike.span.peak;
  done.baseline_seconds = spike.span.baseline;
  done.ios = spike.span.ios;
  done.cause = verdict.cause;
  done.evidence = std::move(verdict.evidence);
  done.missing = std::move(verdict.missing);
  if (spike.span.accepted) {
    done.evidence["accepted_as_baseline"] = 1;
  }
  model::SpikeFigures& figures = figures_[spike.operation];
  ++figures.spikes[index(done.cause)];
  figures.seconds[index(done.cause)] += std::chrono::duration<double>(done.duration).count();
  return done;
}

}  // namespace ssdpulse::analysis
