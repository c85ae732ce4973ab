// SPDX-License-Identifier: Apache-2.0
// The options shared by the commands that query a running daemon.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "daemon/client/api.h"
#include "daemon/config/config.h"

namespace ssdpulse::commands {

struct ClientOptions {
  client::Where where;
  std::string config_file;
  bool json = false;
};

void add_client_options(CLI::App& command, ClientOptions& options);

/// If no file was named, the service is meant: the socket on which its unit makes it listen is tried first.
void ask_the_service(config::Web& web);

/// The configuration in a file; without a name, the service's, if it can be read. Throws CLI::ParseError with every
/// problem of a file that was named: the command line is wrong.
config::Config config_in(const std::string& file);

/// Hidden: how much faster the recorder's clock ran than the host's. Tests make a minute of history in a second.
void add_time_scale(CLI::App& command, double& time_scale);

/// The configuration of the daemon that is queried.
config::Config config_of(const ClientOptions& options);

}  // namespace ssdpulse::commands
