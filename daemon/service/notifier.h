// SPDX-License-Identifier: Apache-2.0
// Reports the state of the daemon to the service manager (sd_notify(3)); does nothing without one.
#pragma once

#include <string>

namespace ssdpulse::service {

/// Whether there is a service manager; this never changes.
bool has_manager();

void ready(const std::string& status);
void reloading();
void stopping();
void status(const std::string& status);
/// "We are alive": to be sent more often than the manager's watchdog interval, if it has one.
void notify_watchdog();

}  // namespace ssdpulse::service
