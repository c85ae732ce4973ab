// SPDX-License-Identifier: Apache-2.0
// StopGuard: from a stop signal on, the process ends in time, whatever its threads wait for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace ssdpulse::service {

class StopGuard {
 public:
  /// Everything ends within ten seconds of the signal; TimeoutStopSec of the service is longer.
  static constexpr std::chrono::seconds kLimit{8};

  /// Unless it is destroyed before `limit` is over: `report` says what is not finished, and the process exits with
  /// ExitCode::failure. `report` is called by another thread, and must not wait for a disk.
  explicit StopGuard(std::function<void()> report, std::chrono::milliseconds limit = kLimit);
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool finished_ = false;
  std::thread thread_;
};

}  // namespace ssdpulse::service
