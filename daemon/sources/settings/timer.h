// SPDX-License-Identifier: Apache-2.0
// read_timer(): what systemd's files contain about a timer. It does not ask the manager, which needs a bus, so it does
// not see a timer that somebody started by hand.
#pragma once

#include <string>

#include "daemon/model/settings.h"

namespace ssdpulse::settings {

/// `root`: put before each path, empty on a host; `name`: of the unit, such as fstrim.timer.
model::TimerSettings read_timer(const std::string& root, const std::string& name);

}  // namespace ssdpulse::settings
