// SPDX-License-Identifier: Apache-2.0
// The options that the commands share which ask a running daemon.
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

/// Where a file was not named, the service is meant: the socket that its unit has it listen on is asked first.
void ask_the_service(config::Web& web);

/// What a file says; without a name, the service's, as far as it can be read. Throws CLI::ParseError with every problem
/// of a file that was named: the command line is wrong.
config::Config config_in(const std::string& file);

/// Hidden: how much faster than the host's the clock of the recorder ran. Tests make a minute of history in a second.
void add_time_scale(CLI::App& command, double& time_scale);

/// The configuration of the daemon that is asked.
config::Config config_of(const ClientOptions& options);

}  // namespace ssdpulse::commands
