// SPDX-License-Identifier: Apache-2.0
// What does a host lack that its configuration counts on? For `ssdpulse check-config`: warnings, no errors, as the file
// may be checked before the host is ready, or on another one.
#pragma once

#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/model/device.h"

namespace ssdpulse::commands {

/// One line each, beginning with the key. Patterns that are the default are not looked at: most hosts have no zram.
std::vector<std::string> host_gaps(const config::Config& config, const model::Inventory& inventory);

}  // namespace ssdpulse::commands
