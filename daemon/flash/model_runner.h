// SPDX-License-Identifier: Apache-2.0
// ModelRunner: the flash models on a thread of their own, so that a tick is never delayed.
// Ticks wait in a bounded queue; events for which it has no room are counted, and the models learn how many they
// missed. When the ModelRunner is destroyed, the thread ends and the states are saved.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "daemon/flash/model_set.h"

namespace ssdpulse::flash {

class ModelRunner {
 public:
  static constexpr std::size_t kMaxTicks = 120;                    // that wait
  static constexpr std::size_t kMaxEvents = std::size_t{1} << 18;  // in them: 4 MiB, more than one ring buffer holds

  explicit ModelRunner(ModelSettings settings);
  ~ModelRunner();
  ModelRunner(const ModelRunner&) = delete;
  ModelRunner& operator=(const ModelRunner&) = delete;

  /// Never waits for the models.
  void observe(FlashInput input);

  /// The newest; never null.
  [[nodiscard]] std::shared_ptr<const model::FlashFigures> figures() const;
  /// How the disks are to be sampled from now on; never null.
  [[nodiscard]] std::shared_ptr<const Sampling> sampling() const;

 private:
  void work();
  bool enqueue(FlashInput& input);

  ModelSet models_;  // the thread's own
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<FlashInput> queue_;
  std::size_t queued_events_ = 0;
  EventsByDevice overflowed_;
  std::shared_ptr<const model::FlashFigures> figures_;
  std::shared_ptr<const Sampling> sampling_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ssdpulse::flash
