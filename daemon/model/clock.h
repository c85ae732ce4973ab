// SPDX-License-Identifier: Apache-2.0
// The clocks of this daemon. WallTime (snapshot.h) is the host's clock, which may be set; the others only move forward.
#pragma once

#include <time.h>

#include <chrono>

namespace ssdpulse::model {

using SteadyTime = std::chrono::steady_clock::time_point;  // CLOCK_MONOTONIC, like the kernel side; stops in suspend

/// A moment on CLOCK_BOOTTIME, which keeps running while the host sleeps: the clock of the ledgers.
inline std::chrono::nanoseconds boot_time(SteadyTime at) {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec) +
         (at - std::chrono::steady_clock::now());
}

}  // namespace ssdpulse::model
