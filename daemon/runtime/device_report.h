// SPDX-License-Identifier: Apache-2.0
// What does `ssdpulse devices` look at? Asks the sources once and prints what they say.
#pragma once

#include <cstdint>
#include <ostream>

#include "daemon/config/config.h"
#include "daemon/util/exit_code.h"

namespace ssdpulse::runtime {

enum class ReportForm : std::uint8_t { text, json };

/// Both leave out loop devices that nothing is attached to. The JSON is described at terminal::devices_json; why there
/// is none goes to stderr.
util::ExitCode report_devices(const config::Config& config, ReportForm form, std::ostream& out);

}  // namespace ssdpulse::runtime
