// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <iostream>
#include <memory>

#include "daemon/advice/host_gaps.h"
#include "daemon/base/child_process.h"
#include "daemon/cli/api_client.h"
#include "daemon/cli/command_options.h"
#include "daemon/cli/commands.h"
#include "daemon/host/inventory.h"
#include "daemon/serve/web_security.h"

namespace ssdpulse::cli {
namespace {

/// Checks the file that web.config_file names, and its certificates; their problems go to stderr.
bool web_security_is_good(const config::Config& configured) {
  if (configured.web.config_file.empty()) {
    return true;
  }
  if (const auto answers = util::file_answers(configured.web.config_file); !answers) {
    std::cerr << answers.error().message << '\n';
    return false;
  }
  // Root checks for the service, which accepts files of its own user.
  std::optional<serve::FileOwner> service;
  if (const auto user = ::geteuid() == 0 ? service_user() : std::nullopt) {
    service = serve::FileOwner{user->user, user->group};
  }
  const auto loaded = serve::load_web_security(configured.web.config_file, nullptr, service);
  if (!loaded.outcome) {
    for (const std::string& problem : loaded.outcome.error()) {
      std::cerr << problem << '\n';
    }
  }
  return loaded.outcome.has_value();
}

/// Gaps do not make the file wrong: they do not affect the exit code, on which a reload of the service depends.
void warn_of_host_gaps(const config::Config& configured) {
  const auto inventory = host::read_inventory({}, {configured.devices.include, configured.devices.exclude});
  if (!inventory) {
    std::cerr << "warning: block devices: " << inventory.error().message << '\n';
    return;
  }
  for (const std::string& gap : advice::host_gaps(configured, *inventory)) {
    std::cerr << "warning: " << gap << '\n';
  }
}

ExitCode check_config(const ConfigurationOptions& options) {
  const auto configured = configure_or_complain(options);
  if (!configured || !web_security_is_good(*configured)) {
    return ExitCode::usage;
  }
  warn_of_host_gaps(*configured);
  std::cout << describe_origin(options) << ": ok\n";
  return ExitCode::success;
}

}  // namespace

void add_check_config(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("check-config", "Check a configuration file and report every problem");
  const auto options = std::make_shared<ConfigurationOptions>();
  options->standard_input = true;
  command->add_option(
      "FILE", options->config_file,
      std::string("Configuration file (YAML); -: the standard input (default ") + kDefaultConfigFile + ")");
  command->callback([options, &exit_code] { exit_code = check_config(*options); });
}

}  // namespace ssdpulse::cli
