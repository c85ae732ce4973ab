// SPDX-License-Identifier: Apache-2.0
// Which block devices would be measured on this host, and which not, and why? For people: `ssdpulse devices`.
#pragma once

#include <ostream>

#include "daemon/config/config.h"
#include "daemon/runtime/exit_code.h"

namespace ssdpulse::runtime {

ExitCode print_devices(const config::Config& config, std::ostream& out);

}  // namespace ssdpulse::runtime
