// SPDX-License-Identifier: Apache-2.0
// How does the daemon live, from the checked configuration to the exit status?
#pragma once

#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/runtime/exit_code.h"

namespace ssdpulse::runtime {

struct RunOptions {
  config::Config config;
  std::string config_file;                  // read again on SIGHUP; empty: built-in defaults, nothing to reload
  std::vector<std::string> listen_address;  // from the command line: wins over the file, also after a reload
};

/// Listens, loads, attaches, gives up its capabilities, then samples every second until SIGTERM or SIGINT.
/// Whatever goes wrong before the first sample is said in one line, with nothing left behind.
ExitCode run(const RunOptions& options);

}  // namespace ssdpulse::runtime
