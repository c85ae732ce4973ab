// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/service_manager.h"

#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "daemon/base/child_process.h"

namespace ssdpulse::service {

// NOLINTNEXTLINE(concurrency-mt-unsafe): never set
bool takes_notifications() { return std::getenv("NOTIFY_SOCKET") != nullptr; }

void ready(const std::string& status) { sd_notify(0, ("READY=1\nSTATUS=" + status).c_str()); }

void reloading() {
  // The manager matches the RELOADING message with its request by this clock (Type=notify-reload).
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const long long microseconds = static_cast<long long>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
  sd_notify(0, ("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds)).c_str());
}

void stopping() { sd_notify(0, "STOPPING=1"); }

void status(const std::string& status) { sd_notify(0, ("STATUS=" + status).c_str()); }

void notify_watchdog() { sd_notify(0, "WATCHDOG=1"); }

util::Result<PassedSockets> take_sockets(const std::string& name) {
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(1, &names);
  if (count < 0) {
    return util::fail_errno("cannot take sockets from systemd", -count);
  }
  PassedSockets passed;
  for (int i = 0; i < count; ++i) {
    if (names[i] == name) {
      passed.wanted.emplace_back(SD_LISTEN_FDS_START + i);
    } else {
      passed.others.emplace_back(names[i]);
    }
    std::free(names[i]);
  }
  std::free(names);
  return passed;
}

StopGuard::StopGuard(std::function<void()> report, std::chrono::milliseconds limit)
    : thread_([report = std::move(report), limit](const std::stop_token& stop) {
        if (!util::stops_within(limit, stop)) {
          report();
          // Not exit(): its destructors would wait for threads that wait for a disk.
          ::_exit(static_cast<int>(util::ExitCode::failure));
        }
      }) {}

}  // namespace ssdpulse::service
