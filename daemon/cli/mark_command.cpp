// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "daemon/cli/command_options.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/daemon_queries.h"

namespace ssdpulse::cli {
namespace {

struct MarkArguments {
  ClientOptions client;
  std::string text;
  std::string id;
};

}  // namespace

void add_mark(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("mark", "Mark in the history that something was changed now");
  const auto options = std::make_shared<MarkArguments>();
  command->add_option("TEXT", options->text, "What was done, such as 'deployed 4.2'; 128 characters at most")
      ->required();
  command->add_option("--id", options->id,
                      "Sent again with the same ID, it makes no second mark; letters, digits, "
                      "hyphens, 64 at most (default: random)");
  add_client_options(*command, options->client);
  command->callback([options, &exit_code] {
    const ClientOptions& asked = options->client;
    exit_code =
        mark(asked.where, config_of(asked).web, options->text, options->id) ? ExitCode::success : ExitCode::failure;
  });
}

}  // namespace ssdpulse::cli
