// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/notifier.h"

#include <systemd/sd-daemon.h>
#include <time.h>

#include <cstdlib>

namespace ssdpulse::service {

bool has_manager() { return std::getenv("NOTIFY_SOCKET") != nullptr; }  // NOLINT(concurrency-mt-unsafe): never set

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

}  // namespace ssdpulse::service
