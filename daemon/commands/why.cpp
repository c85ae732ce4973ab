// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "daemon/client/commands.h"
#include "daemon/commands/client_options.h"
#include "daemon/commands/commands.h"

namespace ssdpulse::commands {
namespace {

struct WhyArguments {
  ClientOptions client;
  client::WhyOptions why;
};

}  // namespace

void add_why(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("why", "Which drive is slow, since when, why, and what to do next");
  const auto options = std::make_shared<WhyArguments>();
  add_client_options(*command, options->client);
  command->add_option("--at", options->why.at,
                      "Ask about a minute in the past: 03:00, 2026-11-23T03:00:12, -10m or @SECONDS");
  command->add_flag("--verbose,-v", options->why.verbose, "Show what speaks for it, too");
  command->callback([options, &exit_code] {
    const ClientOptions& asked = options->client;
    options->why.json = asked.json;
    exit_code = client::why(asked.where, config_of(asked).web, options->why);
  });
}

}  // namespace ssdpulse::commands
