// SPDX-License-Identifier: Apache-2.0
// What does `ssdpulse devices` look at? Asks the sources once and prints what they say.
#pragma once

#include <ostream>

#include "daemon/config/config.h"
#include "daemon/util/exit_code.h"

namespace ssdpulse::runtime {

util::ExitCode report_devices(const config::Config& config, std::ostream& out);

}  // namespace ssdpulse::runtime
