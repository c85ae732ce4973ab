// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "daemon/client/commands.h"
#include "daemon/commands/client_options.h"
#include "daemon/commands/commands.h"

namespace ssdpulse::commands {
namespace {

struct ShownOptions {
  ClientOptions client;
  client::TopOptions top;
};

}  // namespace

void add_top(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command =
      app.add_subcommand("top",
                         "Show the drives in the terminal, the one that needs attention first; without a "
                         "daemon, root measures by itself");
  const auto options = std::make_shared<ShownOptions>();
  add_client_options(*command, options->client);
  command->add_flag("--once", options->top.once, "Print one screen as text and exit");
  command->add_option("--at", options->top.at,
                      "Begin with a time in the past: 03:00, '2026-11-23 03:00', -10m, @1763866800");
  command->callback([options, &exit_code] {
    const ClientOptions& asked = options->client;
    options->top.json = asked.json;
    exit_code = client::top(asked.where, config_of(asked), options->top);
  });
}

}  // namespace ssdpulse::commands
