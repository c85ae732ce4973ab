// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "daemon/client/commands.h"
#include "daemon/commands/client_options.h"
#include "daemon/commands/commands.h"

namespace ssdpulse::commands {
namespace {

struct WhyOptions {
  ClientOptions client;
  std::string at;
};

}  // namespace

void add_why(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("why", "Which drive is slow, since when, why, and what to do next");
  const auto options = std::make_shared<WhyOptions>();
  add_client_options(*command, options->client);
  command->add_option("--at", options->at,
                      "Ask about a minute in the past: 03:00, 2026-11-23T03:00:12, -10m or @SECONDS");
  command->callback([options, &exit_code] {
    const ClientOptions& asked = options->client;
    exit_code = client::why(asked.where, config_of(asked).web, options->at, asked.json);
  });
}

}  // namespace ssdpulse::commands
