// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/recent_past.h"

#include <algorithm>

namespace ssdpulse::live {
namespace {

/// The length of a column during which the clock was set back.
constexpr std::chrono::milliseconds kUsualLength{1000};
constexpr std::chrono::milliseconds kClockStep{500};  // less means that the clock is being slewed

template <typename Mark>
void keep_newest(std::vector<Mark>& marks, std::size_t most) {
  if (marks.size() > most) {
    marks.erase(marks.begin(), marks.end() - static_cast<std::ptrdiff_t>(most));
  }
}

}  // namespace

void RecentPast::observe(const model::Snapshot& snapshot, std::optional<std::chrono::steady_clock::time_point> at) {
  std::map<std::string, DeviceState> before;
  before.swap(states_);
  Ring::Frame frame{snapshot.number, snapshot.taken_at, {}, {}};
  // From rounded ends, so that lengths add up to the time between any two of them.
  const auto rounded = [](model::WallTime time) { return std::chrono::round<std::chrono::milliseconds>(time); };
  frame.length = rounded(snapshot.taken_at) - rounded(last_.value_or(snapshot.taken_at));
  if (at && last_at_) {
    const auto elapsed = std::chrono::round<std::chrono::milliseconds>(*at - *last_at_);
    frame.length = std::chrono::abs(frame.length - elapsed) >= kClockStep ? elapsed : frame.length;
  }
  last_at_ = at;
  for (const model::DeviceSnapshot& device : snapshot.devices) {
    const std::string& name = device.device->name;
    const DeviceState& then = before[name];
    DeviceState& now = states_[name];
    if (device.io && device.interval) {
      const Column column = column_of(*device.interval, device);
      frame.entries.push_back({name, summarize(column), encode(column)});
    }
    note_bursts(device, then, now, snapshot.taken_at);
  }
  if (frame.length < frame.length.zero()) {
    frame.length = kUsualLength;
  }
  if (last_) {
    ring_.push(frame);
  }
  last_ = snapshot.taken_at;
  const std::lock_guard lock(mutex_);
  // A burst ends when its device disappears. A later burst of a device of that name is another one.
  for (Burst& burst : bursts_) {
    if (!burst.end && states_.count(burst.device) == 0) {
      burst.end = snapshot.taken_at;
    }
  }
  since_ = std::min(since_.value_or(snapshot.taken_at), snapshot.taken_at);
  spikes_.insert(spikes_.end(), snapshot.spikes_ended.begin(), snapshot.spikes_ended.end());
  for (std::size_t i = 0; i + kMarks < spikes_.size(); ++i) {
    const auto end = spikes_[i].begin + std::chrono::ceil<model::WallTime::duration>(spikes_[i].duration);
    forgotten_until_ = std::max(forgotten_until_.value_or(end), end);
  }
  std::copy_if(snapshot.host.waits.begin(), snapshot.host.waits.end(), std::back_inserter(waits_),
               [](const model::HostWait& wait) { return wait.over; });
  keep_newest(spikes_, kMarks);
  keep_newest(waits_, kMarks);
  keep_newest(bursts_, kMarks);
}

Burst* RecentPast::open_burst(const std::string& device, model::DiscardTrigger trigger) {
  const auto found = std::find_if(bursts_.rbegin(), bursts_.rend(), [&](const Burst& burst) {
    return burst.device == device && burst.trigger == trigger && !burst.end;
  });
  return found == bursts_.rend() ? nullptr : &*found;
}

void RecentPast::note_bursts(const model::DeviceSnapshot& device, const DeviceState& before, DeviceState& now,
                             model::WallTime at) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
    const model::DiscardBursts& seen = device.discards[i];
    const auto trigger = static_cast<model::DiscardTrigger>(i);
    const std::uint64_t bytes_before = before.seen ? before.burst_bytes[i] : seen.bytes;
    if (seen.active && !before.bursting[i]) {
      bursts_.push_back({device.device->name, trigger, last_.value_or(at), std::nullopt, 0});
    }
    if (Burst* burst = before.bursting[i] || seen.active ? open_burst(device.device->name, trigger) : nullptr) {
      burst->bytes = seen.bytes - std::min(seen.bytes, bytes_before);
      burst->end = seen.active ? std::nullopt : std::optional(at);
    }
    now.bursting[i] = seen.active;
    now.burst_bytes[i] = seen.active ? bytes_before : seen.bytes;
  }
  now.seen = true;
}

std::vector<model::LatencySpike> RecentPast::ended_spikes() const {
  const std::lock_guard lock(mutex_);
  return spikes_;
}

std::vector<model::HostWait> RecentPast::ended_waits() const {
  const std::lock_guard lock(mutex_);
  return waits_;
}

std::vector<Burst> RecentPast::bursts() const {
  const std::lock_guard lock(mutex_);
  return bursts_;
}

std::optional<model::WallTime> RecentPast::since() const {
  const std::lock_guard lock(mutex_);
  return since_;
}

std::optional<model::WallTime> RecentPast::remembered_since() const {
  const std::lock_guard lock(mutex_);
  return since_ && forgotten_until_ ? std::max(since_, forgotten_until_) : since_;
}

}  // namespace ssdpulse::live
