// SPDX-License-Identifier: Apache-2.0
// `ssdpulse devices`: the host's block devices, which of them would be measured, and why others would not.
#pragma once

#include <ostream>

#include "daemon/config/config.h"
#include "daemon/runtime/exit_code.h"

namespace ssdpulse::runtime {

ExitCode print_devices(const config::Config& config, std::ostream& out);

}  // namespace ssdpulse::runtime
