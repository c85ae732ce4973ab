// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "daemon/commands/commands.h"
#include "daemon/commands/configuration_options.h"
#include "daemon/config/key_documents.h"
#include "daemon/config/parse.h"

namespace ssdpulse::commands {
namespace {

struct PrintOptions {
  ConfigurationOptions configuration;
  bool commented = false;  // at most one of these three; none: what is in force
  bool schema = false;
  bool as_manual = false;
};

ExitCode print_config(const PrintOptions& options) {
  if (options.commented || options.schema || options.as_manual) {
    std::cout << (options.commented ? config::commented_defaults()
                  : options.schema  ? config::schema_json()
                                    : config::manual_page());
    return std::cout.flush() ? ExitCode::success : ExitCode::failure;
  }
  const auto configured = configure_or_complain(options.configuration);
  if (!configured) {
    return ExitCode::usage;
  }
  std::cout << config::print(*configured);
  return ExitCode::success;
}

}  // namespace

void add_print_config(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("print-config", "Print the effective configuration");
  const auto options = std::make_shared<PrintOptions>();
  add_configuration_options(*command, options->configuration);
  CLI::Option* commented = command->add_flag("--commented", options->commented, "Every key at its default, explained");
  CLI::Option* schema = command->add_flag("--schema", options->schema, "The JSON schema of the configuration");
  command->add_flag("--man", options->as_manual, "The manual page ssdpulse.yaml(5)")
      ->excludes(commented)
      ->excludes(schema);
  schema->excludes(commented);
  command->callback([options, &exit_code] { exit_code = print_config(*options); });
}

}  // namespace ssdpulse::commands
