// SPDX-License-Identifier: Apache-2.0
// run(): the life of the daemon, from the configuration to the exit status.
#pragma once

#include "daemon/base/result.h"
#include "daemon/config/config.h"

namespace ssdpulse::runtime {

using util::ExitCode;

/// Listens, loads, attaches, gives up its capabilities, then samples every second until SIGTERM or SIGINT.
/// Whatever goes wrong before the first sample is reported in one line, with nothing left behind.
ExitCode run(const config::Configure& configure);

}  // namespace ssdpulse::runtime
