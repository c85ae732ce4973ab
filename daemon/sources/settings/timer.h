// SPDX-License-Identifier: Apache-2.0
// What do systemd's files contain about a timer? Does not help where somebody starts timers by hand, and does not ask
// the manager, which needs a bus.
#pragma once

#include <string>

#include "daemon/model/settings.h"

namespace ssdpulse::settings {

model::TimerSettings read_timer(const std::string& root, const std::string& name);

}  // namespace ssdpulse::settings
