// SPDX-License-Identifier: Apache-2.0
// How does the daemon live, from the checked configuration to the exit status?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/runtime/exit_code.h"
#include "daemon/util/result.h"

namespace ssdpulse::runtime {

/// Makes the effective configuration, from file and command line: at the start, and again on SIGHUP.
/// Or every problem with it, one line each.
using Configure = std::function<tl::expected<config::Config, std::vector<std::string>>()>;

/// Listens, loads, attaches, gives up its capabilities, then samples every second until SIGTERM or SIGINT.
/// Whatever goes wrong before the first sample is said in one line, with nothing left behind.
ExitCode run(const Configure& configure);

}  // namespace ssdpulse::runtime
