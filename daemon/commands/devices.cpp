// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "daemon/client/commands.h"
#include "daemon/commands/client_options.h"
#include "daemon/commands/commands.h"
#include "daemon/commands/configuration_options.h"
#include "daemon/runtime/device_report.h"

namespace ssdpulse::commands {
namespace {

struct DevicesOptions {
  ConfigurationOptions configuration;
  bool json = false;
};

ExitCode list_devices(const DevicesOptions& options) {
  const auto configured = configure_or_complain(options.configuration);
  if (!configured) {
    return ExitCode::usage;
  }
  if (options.json) {
    const ExitCode exit_code = runtime::report_devices(*configured, runtime::ReportForm::json, std::cout);
    return std::cout.flush() ? exit_code : ExitCode::failure;
  }
  const ExitCode exit_code = runtime::report_devices(*configured, runtime::ReportForm::text, std::cout);
  config::Web web = configured->web;
  if (!options.configuration.config_file) {
    ask_the_service(web);
  }
  client::print_modelled({}, web, std::cout);
  return exit_code;
}

}  // namespace

void add_devices(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("devices", "List block devices and whether they are measured");
  const auto options = std::make_shared<DevicesOptions>();
  add_configuration_options(*command, options->configuration);
  command->add_flag("--json", options->json, "As JSON");
  command->callback([options, &exit_code] { exit_code = list_devices(*options); });
}

}  // namespace ssdpulse::commands
