// SPDX-License-Identifier: Apache-2.0
// Tells the service manager how the daemon is (sd_notify(3)); does nothing without one.
#pragma once

#include <string>

namespace ssdpulse::service {

/// Whether there is a service manager; that does not change.
bool has_manager();

void ready(const std::string& status);
void reloading();
void stopping();
void status(const std::string& status);
/// "We are alive": to be sent more often than the manager's watchdog interval, if it has one.
void alive();

}  // namespace ssdpulse::service
