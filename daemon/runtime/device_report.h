// SPDX-License-Identifier: Apache-2.0
// report_devices(): the output of `ssdpulse devices`. Asks the sources once and prints what they report.
#pragma once

#include <cstdint>
#include <ostream>

#include "daemon/config/config.h"
#include "daemon/util/exit_code.h"

namespace ssdpulse::runtime {

enum class ReportForm : std::uint8_t { text, json };

/// Both forms leave out loop devices with nothing attached. The JSON is described at terminal::devices_json; if there
/// is none, the reason goes to stderr.
util::ExitCode report_devices(const config::Config& config, ReportForm form, std::ostream& out);

}  // namespace ssdpulse::runtime
