// SPDX-License-Identifier: Apache-2.0
// What do the files of systemd say of a timer? Of no use where somebody starts timers by hand, and it does not ask
// the manager, which needs a bus.
#pragma once

#include <string>

#include "daemon/model/settings.h"

namespace ssdpulse::settings {

model::TimerSettings read_timer(const std::string& root, const std::string& name);

}  // namespace ssdpulse::settings
