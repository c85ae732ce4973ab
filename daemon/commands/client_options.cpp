// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands/client_options.h"

#include <string>

#include "daemon/commands/configuration_options.h"
#include "daemon/config/parse.h"
#include "daemon/util/in_time.h"

namespace ssdpulse::commands {

void add_client_options(CLI::App& command, ClientOptions& options) {
  command.add_option("--address", options.where.address,
                     "Where the daemon answers: HOST:PORT, http(s)://HOST:PORT or unix:PATH (default: the service's "
                     "unix socket, else as configured)");
  command.add_option("--cacert", options.where.ca_file, "File of certificates to trust, for https");
  command.add_option("--config,-c", options.config_file, "The daemon's configuration file, for its address");
  command.add_flag("--json", options.json, "Print the answer as JSON");
}

void ask_the_service(config::Web& web) {
  constexpr const char* kServiceSocket =
      "/run/ssdpulse/web.socket";  // on the unit's command line, which overrides a file
  if (web.socket.empty() || client::somebody_listens_on(kServiceSocket)) {
    web.socket = kServiceSocket;
  }
}

config::Config config_in(const std::string& file) {
  if (const auto answers = util::file_answers(file.empty() ? kDefaultConfigFile : file); !answers) {
    throw CLI::ParseError(answers.error().message, CLI::ExitCodes::ValidationError);
  }
  const auto loaded = config::load(file.empty() ? kDefaultConfigFile : file);
  if (!loaded && !file.empty()) {
    throw CLI::ParseError(to_string(loaded.error()), CLI::ExitCodes::ValidationError);
  }
  auto config = loaded.value_or(config::Config{});
  if (file.empty()) {
    ask_the_service(config.web);
  }
  return config;
}

void add_time_scale(CLI::App& command, double& time_scale) {
  command.add_option("--time-scale", time_scale)
      ->check(CLI::Range(1.0, 1e6))
      ->envname("SSDPULSE_TIME_SCALE")
      ->group("");
}

config::Config config_of(const ClientOptions& options) { return config_in(options.config_file); }

}  // namespace ssdpulse::commands
