// SPDX-License-Identifier: Apache-2.0
// The options that the commands with a configuration share: a file, and what the command line says instead.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/util/result.h"

namespace ssdpulse::commands {

struct ConfigurationOptions {
  std::string config_file;
  std::vector<std::string> listen_address;
  std::string web_config_file;
  std::optional<std::string> web_socket;
  bool systemd_socket = false;
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::optional<std::string> history_directory;
  std::optional<std::string> reader_socket;
};

void add_configuration_options(CLI::App& command, ConfigurationOptions& options);

/// File, then command line; or every problem of both.
tl::expected<config::Config, std::vector<std::string>> configure(const ConfigurationOptions& options);

/// For commands that end at once: the configuration, or its problems on stderr.
std::optional<config::Config> configure_or_complain(const ConfigurationOptions& options);

}  // namespace ssdpulse::commands
