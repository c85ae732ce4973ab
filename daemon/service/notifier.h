// SPDX-License-Identifier: Apache-2.0
// What does the service manager hear from us? sd_notify(3); silent when there is no manager.
#pragma once

#include <string>

namespace ssdpulse::service {

/// Whether somebody is told at all; that does not change.
bool has_manager();

void ready(const std::string& status);
void reloading();
void stopping();
void status(const std::string& status);
/// "We are alive": to be sent more often than the manager's watchdog interval, if it has one.
void alive();

}  // namespace ssdpulse::service
