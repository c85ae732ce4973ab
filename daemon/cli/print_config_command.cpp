// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "daemon/cli/command_options.h"
#include "daemon/cli/commands.h"
#include "daemon/config/config.h"
#include "daemon/config/key_documents.h"

namespace ssdpulse::cli {
namespace {

struct PrintOptions {
  ConfigurationOptions configuration;
  // At most one of these: a document about the keys instead of the effective configuration.
  bool commented = false;
  bool schema = false;
  bool manual = false;
};

/// Nothing if the configuration has problems: they are on stderr then.
std::optional<std::string> text_of(const PrintOptions& options) {
  if (options.commented) {
    return config::commented_defaults();
  }
  if (options.schema) {
    return config::schema_json();
  }
  if (options.manual) {
    return config::manual_page();
  }
  const auto effective = configure_or_complain(options.configuration);
  return effective ? std::optional(config::print(*effective)) : std::nullopt;
}

ExitCode print_config(const PrintOptions& options) {
  const auto text = text_of(options);
  if (!text) {
    return ExitCode::usage;
  }
  std::cout << *text;
  return std::cout.flush() ? ExitCode::success : ExitCode::failure;
}

}  // namespace

void add_print_config(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("print-config", "Print the effective configuration");
  const auto options = std::make_shared<PrintOptions>();
  add_configuration_options(*command, options->configuration);
  CLI::Option* commented = command->add_flag("--commented", options->commented, "Every key at its default, explained");
  CLI::Option* schema = command->add_flag("--schema", options->schema, "The JSON schema of the configuration");
  command->add_flag("--man", options->manual, "The manual page ssdpulse.yaml(5)")
      ->excludes(commented)
      ->excludes(schema);
  schema->excludes(commented);
  command->callback([options, &exit_code] { exit_code = print_config(*options); });
}

}  // namespace ssdpulse::cli
