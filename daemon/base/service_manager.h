// SPDX-License-Identifier: Apache-2.0
// What the daemon and its service manager exchange: its state (sd_notify(3)), to a manager if there is one, and sockets
// (sd_listen_fds(3)). Besides, StopGuard: from a stop signal on, the process ends in time, whatever its threads wait
// for.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/result.h"

namespace ssdpulse::service {

/// Whether a service manager wants to hear from us (NOTIFY_SOCKET); this never changes.
bool takes_notifications();

void ready(const std::string& status);
void reloading();
void stopping();
void status(const std::string& status);
/// Keep-alive: to be sent more often than the manager's watchdog interval, if it has one.
void notify_watchdog();

/// The sockets that the service manager has opened for us.
struct PassedSockets {
  std::vector<util::UniqueFd> wanted;
  std::vector<std::string> others;  // names of sockets that were passed for another use; they stay open
};

/// The sockets with FileDescriptorName=`name`. Works only once, so that no child process takes them for its own.
util::Result<PassedSockets> take_sockets(const std::string& name);

class StopGuard {
 public:
  /// So that the process ends within ten seconds of the signal, before TimeoutStopSec of its service.
  static constexpr std::chrono::seconds kLimit{8};

  /// Unless it is destroyed before `limit` is over: `report` says what is not finished, and the process exits with
  /// ExitCode::failure. `report` is called by another thread, and must not wait for a disk.
  explicit StopGuard(std::function<void()> report, std::chrono::milliseconds limit = kLimit);

 private:
  std::jthread thread_;
};

}  // namespace ssdpulse::service
