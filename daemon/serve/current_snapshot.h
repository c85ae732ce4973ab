// SPDX-License-Identifier: Apache-2.0
// CurrentSnapshot: the newest Snapshot, and whether it is fresh. The one point where the sampling thread and the
// readers meet.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "daemon/model/snapshot.h"

namespace ssdpulse::serve {

/// Thread-safe; get() returns null until the first publish().
class CurrentSnapshot {
 public:
  using Clock = std::chrono::steady_clock;  // never set, unlike the wall clock; stops while the host sleeps

  /// An older Snapshot means that sampling stands still: it ticks once a second, and the service manager waits as long.
  static constexpr std::chrono::seconds kFresh{30};

  [[nodiscard]] std::shared_ptr<const model::Snapshot> get() const { return current_.load(); }
  void publish(std::shared_ptr<const model::Snapshot> snapshot, Clock::time_point now = Clock::now()) {
    current_.store(std::move(snapshot));
    published_.store(now);
  }
  [[nodiscard]] bool fresh(Clock::time_point now = Clock::now()) const {
    return get() != nullptr && now - published_.load() < kFresh;
  }

 private:
  std::atomic<Clock::time_point> published_{};
  std::atomic<std::shared_ptr<const model::Snapshot>> current_;
};

}  // namespace ssdpulse::serve
