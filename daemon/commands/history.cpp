// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <string>

#include "daemon/client/commands.h"
#include "daemon/commands/client_options.h"
#include "daemon/commands/commands.h"

namespace ssdpulse::commands {
namespace {

struct HistoryArguments {
  ClientOptions client;
  client::HistoryOptions history;
  std::optional<std::string> directory;
  std::string file;
  bool check = false;
  std::string backup;
  std::string salvage;
};

bool run(const HistoryArguments& arguments) {
  config::Config config = config_of(arguments.client);
  config.history.directory = arguments.directory.value_or(config.history.directory);
  const std::string file = arguments.file.empty() ? config.history.directory + "/ssdpulse.db" : arguments.file;
  if (arguments.check) {
    return client::check_history_file(file);
  }
  if (!arguments.backup.empty()) {
    return client::back_up_history_file(file, arguments.backup);
  }
  if (!arguments.salvage.empty()) {
    return client::salvage_history_file(file, arguments.salvage);
  }
  return client::history(arguments.client.where, config, arguments.history);
}

}  // namespace

void add_history(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("history", "Show the past of a device, as far back as the history reaches");
  const auto options = std::make_shared<HistoryArguments>();
  add_client_options(*command, options->client);
  command->add_option("--device", options->history.device,
                      "Its name, serial number or WWID (default: which devices there are)");
  command->add_option("--from", options->history.from, "Times as in `why --at`: 03:00, 2026-11-23T03:00, -10m");
  command->add_option("--to", options->history.to, "Until when (default now; --from: a day before)");
  command->add_option("--points", options->history.points, "At most this many lines, 2 to 2000 (default 48)")
      ->check(CLI::Range(2, 2000));
  command
      ->add_option_function<std::string>(
          "--by", [options](const std::string&) { options->history.by_tenant = true; },
          "tenant: what each tenant did, instead of what the device did")
      ->check(CLI::IsMember({"tenant"}))
      ->needs("--device");
  command->add_flag("--csv", options->history.csv, "Print every figure of each point as CSV")->excludes("--json");
  command->add_option("--history.directory", options->directory,
                      "Where the history is, for when no daemon answers (default: as configured)");
  command->add_option("--file", options->file,
                      "With --check, --backup and --salvage: another history file, such as one that was set aside");
  auto* check = command->add_flag("--check", options->check,
                                  "Read the whole file: is every page as it was written, is every row accounted for?");
  auto* backup =
      command->add_option("--backup", options->backup, "Make a consistent copy of the file, also while a daemon runs")
          ->excludes(check);
  command->add_option("--salvage", options->salvage, "Write what is readable in a damaged file to this new one")
      ->excludes(check)
      ->excludes(backup);
  command->callback([options, &exit_code] {
    options->history.json = options->client.json;
    exit_code = run(*options) ? ExitCode::success : ExitCode::failure;
  });
}

}  // namespace ssdpulse::commands
