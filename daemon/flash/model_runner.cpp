// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/model_runner.h"

#include <pthread.h>

#include <utility>

namespace ssdpulse::flash {
namespace {

std::size_t events_of(const FlashInput& input) { return input.samples ? input.samples->events.size() : 0; }

/// Counts are cumulative and come again with the next tick: only the events are missing.
EventsByDevice count_events(const FlashInput& input) {
  EventsByDevice result;
  if (input.samples) {
    const auto& devices = input.samples->devices;
    std::vector<std::array<std::uint64_t, model::kFlashEventKinds>> by_index(devices.size());
    for (const model::FlashEvent& event : input.samples->events) {
      if (event.device < by_index.size()) {
        ++by_index[event.device][static_cast<std::size_t>(event.kind)];
      }
    }
    for (std::size_t i = 0; i < devices.size(); ++i) {
      result.emplace(devices[i].device, by_index[i]);
    }
  }
  return result;
}

}  // namespace

ModelRunner::ModelRunner(ModelSettings settings)
    : models_(std::move(settings)), figures_(models_.figures()), sampling_(models_.sampling()) {
  thread_ = std::thread([this] { work(); });
}

ModelRunner::~ModelRunner() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

/// Whether there was room for it.
bool ModelRunner::enqueue(FlashInput& input) {
  const std::lock_guard lock(mutex_);
  if (queue_.size() >= kMaxTicks || queued_events_ + events_of(input) > kMaxEvents) {
    return false;
  }
  input.overflowed = std::exchange(overflowed_, {});
  queued_events_ += events_of(input);
  queue_.push_back(std::move(input));
  return true;
}

void ModelRunner::observe(FlashInput input) {
  if (enqueue(input)) {
    wake_.notify_one();
    return;
  }
  // Up to a few hundred thousand events, so not under the lock.
  const EventsByDevice missed = count_events(input);
  const std::lock_guard lock(mutex_);
  for (const auto& [device, events] : missed) {
    for (std::size_t kind = 0; kind < events.size(); ++kind) {
      overflowed_[device][kind] += events[kind];
    }
  }
}

void ModelRunner::work() {
  ::pthread_setname_np(::pthread_self(), "flash-models");
  model::WallTime wall{};
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) {
      break;
    }
    const FlashInput input = std::move(queue_.front());
    queue_.pop_front();
    queued_events_ -= events_of(input);
    lock.unlock();
    models_.observe(input);
    wall = input.wall;
    lock.lock();
    figures_ = models_.figures();
    sampling_ = models_.sampling();
  }
  lock.unlock();
  models_.keep_all(wall);
}

std::shared_ptr<const model::FlashFigures> ModelRunner::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

std::shared_ptr<const Sampling> ModelRunner::sampling() const {
  const std::lock_guard lock(mutex_);
  return sampling_;
}

}  // namespace ssdpulse::flash
