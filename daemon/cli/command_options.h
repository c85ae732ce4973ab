// SPDX-License-Identifier: Apache-2.0
// ConfigurationOptions and ClientOptions: what several commands take from the command line, and the configuration that
// follows from it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/cli/api_client.h"
#include "daemon/config/config.h"

namespace ssdpulse::cli {

/// The file of the service, which need not exist.
inline constexpr const char* kDefaultConfigFile = SSDPULSE_DEFAULT_CONFIG_FILE;

struct ConfigurationOptions {
  std::optional<std::string> config_file;         // must exist; empty: the built-in defaults; none: default_file
  std::string default_file = kDefaultConfigFile;  // read if it exists
  bool standard_input = false;                    // whether a config_file of "-" is the standard input
  std::vector<std::string> listen_address;
  std::string web_config_file;
  std::optional<std::string> web_socket;
  bool systemd_socket = false;
  bool allow_less_protection = false;
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::optional<std::string> history_directory;
  std::optional<std::string> reader_socket;
};

void add_configuration_options(CLI::App& command, ConfigurationOptions& options);

/// Where the configuration comes from, in words: the path, or that there is none.
std::string describe_origin(const ConfigurationOptions& options);

/// The file, overridden by the command line; or every problem of both.
tl::expected<config::Config, std::vector<std::string>> configure(const ConfigurationOptions& options);

/// A file on a disk that takes more than two seconds: a person gets an error, a daemon waits.
enum class SlowFile { refused, awaited };
/// The configuration, or its problems on stderr.
std::optional<config::Config> configure_or_complain(const ConfigurationOptions& options,
                                                    SlowFile slow = SlowFile::refused);

/// Of the commands that query a running daemon.
struct ClientOptions {
  Where where;
  std::string config_file;
  bool json = false;  // prints the answer itself
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

/// The history's database in its directory.
std::string history_file_in(const std::string& directory);

}  // namespace ssdpulse::cli
