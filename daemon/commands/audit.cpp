// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "daemon/client/commands.h"
#include "daemon/commands/client_options.h"
#include "daemon/commands/commands.h"

namespace ssdpulse::commands {
namespace {

struct AuditArguments {
  ClientOptions client;
  client::AuditOptions audit;
  double enough_hours = 24;
  std::string history_directory;
  bool rules = false;
};

ExitCode audit(AuditArguments& arguments) {
  if (arguments.rules) {
    client::print_rules(std::cout);
    return ExitCode::success;
  }
  arguments.audit.findings.json = arguments.client.json;
  arguments.audit.enough = std::chrono::seconds(static_cast<std::int64_t>(arguments.enough_hours * 3600));
  const auto config = config_of(arguments.client);
  const std::string& directory =
      arguments.history_directory.empty() ? config.history.directory : arguments.history_directory;
  if (!directory.empty() && arguments.audit.findings.root.empty()) {
    arguments.audit.history_file = directory + "/ssdpulse.db";
  }
  return client::audit(arguments.client.where, config, arguments.audit);
}

}  // namespace

void add_audit(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command =
      app.add_subcommand("audit", "What should be changed on this host, based on what was measured on it");
  const auto arguments = std::make_shared<AuditArguments>();
  client::AuditOptions& options = arguments->audit;
  add_client_options(*command, arguments->client);
  command->add_flag("--markdown", options.findings.markdown, "Print Markdown");
  command->add_flag("--all", options.findings.style.all, "Also show what is fine, does not apply or was accepted");
  command->add_flag("--verbose,-v", options.findings.style.verbose, "Show everything that is known about each finding");
  command->add_option("--accepted", options.accepted_file,
                      "File of findings that were accepted (default /etc/ssdpulse/accepted.yaml)");
  command
      ->add_option("--min-observation", arguments->enough_hours,
                   "Hours that must have been measured before something is advised, and seven times as long where it "
                   "may happen once a week (default 24)")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--history.directory", arguments->history_directory, "Directory of the history");
  add_time_scale(*command, options.time_scale);
  command->add_flag("--rules", arguments->rules, "List the rules, with their limits and sources");
  command->add_option("--root", options.findings.root, "Directory with the sys, proc and etc of another host")
      ->group("");
  command->footer("Exit status: 0 nothing to do; 1 something is advised, or in danger; 2 wrong command line or file.");
  command->callback([arguments, &exit_code] { exit_code = audit(*arguments); });
}

}  // namespace ssdpulse::commands
