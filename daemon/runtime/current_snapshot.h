// SPDX-License-Identifier: Apache-2.0
// Which Snapshot is the newest? The one point where the sampling thread and the readers meet.
#pragma once

#include <atomic>
#include <memory>

#include "daemon/model/snapshot.h"

namespace ssdpulse::runtime {

/// Thread-safe; get() gives null until the first publish().
class CurrentSnapshot {
 public:
  [[nodiscard]] std::shared_ptr<const model::Snapshot> get() const { return current_.load(); }
  void publish(std::shared_ptr<const model::Snapshot> snapshot) { current_.store(std::move(snapshot)); }

 private:
  std::atomic<std::shared_ptr<const model::Snapshot>> current_;
};

}  // namespace ssdpulse::runtime
