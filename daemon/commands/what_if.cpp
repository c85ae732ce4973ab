// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/what_if.h"

#include <memory>
#include <string>
#include <utility>

#include "daemon/client/commands.h"
#include "daemon/commands/client_options.h"
#include "daemon/commands/commands.h"

namespace ssdpulse::commands {
namespace {

struct WhatIfArguments {
  ClientOptions client;
  client::WhatIfOptions what_if;
};

/// Accepts only these characters, which go into a URL unescaped.
CLI::Validator made_of(std::string characters, const std::string& name) {
  return CLI::Validator(
      [characters = std::move(characters)](const std::string& text) {
        return text.empty() || text.find_first_not_of(characters) != std::string::npos
                   ? "expected characters of " + characters + ", found '" + text + "'"
                   : std::string();
      },
      name);
}

}  // namespace

void add_what_if(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand(
      "what-if", "What each drive would write, and how long it would live, with more spare flash, or without discards");
  const auto options = std::make_shared<WhatIfArguments>();
  add_client_options(*command, options->client);
  command->add_option("--device", options->what_if.device, "A disk, as the kernel names it (default: all)")
      ->check(made_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.!", "NAME"));
  command
      ->add_option("--op", options->what_if.overprovisioning,
                   "Spare flash in percent, several with commas (default 7,12,28,50)")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return live::percents_in(text)
                       ? std::string()
                       : "expected percents of 0.1 to 1000, 16 at most, such as 7,12,28, found '" + text + "'";
          },
          "PERCENTS"));
  command
      ->add_option("--window", options->what_if.window, "24h, 7d or drive_write (default: the shortest that is known)")
      ->check(CLI::IsMember({"24h", "7d", "drive_write"}));
  command->callback([options, &exit_code] {
    options->what_if.json = options->client.json;
    exit_code = client::what_if(options->client.where, config_of(options->client).web, options->what_if);
  });
}

}  // namespace ssdpulse::commands
