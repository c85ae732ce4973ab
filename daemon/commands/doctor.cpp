// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "daemon/client/commands.h"
#include "daemon/commands/client_options.h"
#include "daemon/commands/commands.h"

namespace ssdpulse::commands {
namespace {

struct DoctorOptions {
  ClientOptions client;
  client::FindingsOptions findings;
};

}  // namespace

void add_doctor(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("doctor", "What is not measured here, why, and what would change it");
  const auto options = std::make_shared<DoctorOptions>();
  add_client_options(*command, options->client);
  command->add_flag("--all", options->findings.style.all, "Also show what is fine");
  command->add_flag("--verbose,-v", options->findings.style.verbose,
                    "Show everything that is known about each finding");
  command->add_option("--root", options->findings.root, "Directory with the sys, proc and dev of another host")
      ->group("");
  command->footer("Exit status: 0 all that can be measured here is; 1 something is not; 2 wrong command line.");
  command->callback([options, &exit_code] {
    options->findings.json = options->client.json;
    exit_code = client::doctor(options->client.where, config_of(options->client), options->findings);
  });
}

}  // namespace ssdpulse::commands
