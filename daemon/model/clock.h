// SPDX-License-Identifier: Apache-2.0
// On which clocks are times? WallTime (snapshot.h) is the host's, which may be set; the others only go on.
#pragma once

#include <time.h>

#include <chrono>

namespace ssdpulse::model {

using SteadyTime = std::chrono::steady_clock::time_point;  // CLOCK_MONOTONIC, as the kernel side's: stands while asleep

/// A moment on CLOCK_BOOTTIME, which goes on while the host sleeps: the clock of the ledgers.
inline std::chrono::nanoseconds boot_time(SteadyTime at) {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec) +
         (at - std::chrono::steady_clock::now());
}

}  // namespace ssdpulse::model
