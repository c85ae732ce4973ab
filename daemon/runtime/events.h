// SPDX-License-Identifier: Apache-2.0
// Events: what woke the daemon. A second's tick, a signal, a change of disks or mounts, an answer, a deadline. One
// thread waits for all of them in one place; nothing else in the daemon sleeps.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/sources/inventory/uevent_monitor.h"
#include "daemon/util/result.h"
#include "daemon/util/unique_fd.h"

namespace ssdpulse::runtime {

struct Wakeup {
  std::uint64_t ticks = 0;  // due since the last wake-up; more than one: some were missed
  bool late = false;        // the tick came more than half an interval after it was due
  bool disks_changed = false;
  bool mounts_changed = false;
  bool reload = false;    // SIGHUP
  bool stop = false;      // SIGTERM, SIGINT
  bool answered = false;  // the watched descriptor can be read
};

class Events {
 public:
  /// Blocks SIGTERM, SIGINT and SIGHUP (and ignores SIGPIPE) for this thread and all that it starts later.
  static util::Result<Events> open(std::chrono::nanoseconds tick);

  /// Sleeps until something happens, or until the deadline (CLOCK_MONOTONIC). `watched`: one more descriptor to wait
  /// for.
  Wakeup wait(int watched = -1, std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt);

 private:
  Events(util::UniqueFd signals, util::UniqueFd timer, util::UniqueFd mounts,
         std::optional<inventory::UeventMonitor> uevents, std::chrono::nanoseconds tick);

  util::UniqueFd signals_;
  util::UniqueFd timer_;
  util::UniqueFd mounts_;                            // /proc/self/mountinfo: POLLPRI when it changes
  std::optional<inventory::UeventMonitor> uevents_;  // absent in a network namespace without them
  std::chrono::nanoseconds tick_;
  std::chrono::nanoseconds next_due_;  // CLOCK_MONOTONIC
};

}  // namespace ssdpulse::runtime
