// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "daemon/commands/commands.h"
#include "daemon/commands/configuration_options.h"
#include "daemon/web/security.h"

namespace ssdpulse::commands {
namespace {

/// The file that web.config_file names, and the certificates; or their problems on stderr.
bool web_security_is_good(const config::Config& configured) {
  if (configured.web.config_file.empty()) {
    return true;
  }
  const auto loaded = web::load_web_security(configured.web.config_file);
  if (!loaded.outcome) {
    for (const std::string& problem : loaded.outcome.error()) {
      std::cerr << problem << '\n';
    }
  }
  return loaded.outcome.has_value();
}

ExitCode check_config(const ConfigurationOptions& options) {
  const auto configured = configure_or_complain(options);
  if (!configured || !web_security_is_good(*configured)) {
    return ExitCode::usage;
  }
  std::cout << options.config_file << ": ok\n";
  return ExitCode::success;
}

}  // namespace

void add_check_config(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("check-config", "Check a configuration file and report every problem");
  const auto options = std::make_shared<ConfigurationOptions>();
  command->add_option("FILE", options->config_file, "Configuration file (YAML)")->required();
  command->callback([options, &exit_code] { exit_code = check_config(*options); });
}

}  // namespace ssdpulse::commands
