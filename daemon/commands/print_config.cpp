// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "daemon/commands/commands.h"
#include "daemon/commands/configuration_options.h"
#include "daemon/config/parse.h"

namespace ssdpulse::commands {
namespace {

ExitCode print_config(const ConfigurationOptions& options) {
  const auto configured = configure_or_complain(options);
  if (!configured) {
    return ExitCode::usage;
  }
  std::cout << config::print(*configured);
  return ExitCode::success;
}

}  // namespace

void add_print_config(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("print-config", "Print the effective configuration");
  const auto options = std::make_shared<ConfigurationOptions>();
  add_configuration_options(*command, *options);
  command->callback([options, &exit_code] { exit_code = print_config(*options); });
}

}  // namespace ssdpulse::commands
