// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "daemon/client/commands.h"
#include "daemon/commands/client_options.h"
#include "daemon/commands/commands.h"

namespace ssdpulse::commands {
namespace {

struct ReportArguments {
  client::ReportOptions report;
  std::string config_file;
  std::string history_directory;
  std::string fail_on;
};

void add_windows(CLI::App& command, client::AskedWindows& windows) {
  auto* before =
      command.add_option("--before", windows.before, "FROM..TO, or a duration that ends where --after begins");
  auto* after = command.add_option("--after", windows.after, "FROM..TO, as in -2h..-1h, or a duration that ends now");
  before->needs(after);
  after->needs(before);
  auto* change =
      command.add_option("--change", windows.change,
                         "TIME, or last: equal windows around it (last: the newest mark or change of a setting)");
  auto* last = command.add_option("--last", windows.last, "One window alone: a duration that ends now, as in 24h");
  change->excludes(before)->excludes(last);
  last->excludes(before);
  command.add_option("--settle", windows.settle, "What --change leaves out after the change (default 10m)")
      ->needs(change);
  command.add_option("--width", windows.width, "The most that --change takes on either side (default 24h)")
      ->needs(change);
}

void add_options(CLI::App& command, ReportArguments& arguments) {
  add_windows(command, arguments.report.windows);
  command.add_option("--device", arguments.report.device, "Name or serial number (default: all)");
  auto* json = command.add_flag("--json", arguments.report.json, "Print JSON");
  command.add_flag("--markdown", arguments.report.markdown, "Print Markdown")->excludes(json);
  command.add_option("--html", arguments.report.html_file,
                     "Write one page with the heatmaps of both windows to this file");
  command.add_option("--fail-on", arguments.fail_on, "worse: exit status 1 if any row is worse")
      ->check(CLI::IsMember({"worse"}));
  command.add_option("--config,-c", arguments.config_file, "The daemon's configuration file, for its history");
  command.add_option("--history.directory", arguments.history_directory, "Directory of the history");
  add_time_scale(command, arguments.report.time_scale);
  command.footer(
      "Exit status: 0 reported; 1 a row is worse (with --fail-on worse), or the history cannot be read; 2 wrong "
      "command\n"
      "line, or no such windows; 6 nothing was measured in them.");
}

/// The database in the directory that was named, or else in the configured one.
std::string history_file(const ReportArguments& arguments) {
  const std::string configured = config_in(arguments.config_file).history.directory;
  const std::string& directory = arguments.history_directory.empty() ? configured : arguments.history_directory;
  if (directory.empty()) {
    throw CLI::ParseError("no history is kept: history.directory is empty", CLI::ExitCodes::ValidationError);
  }
  return directory + "/ssdpulse.db";
}

}  // namespace

void add_report(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command =
      app.add_subcommand("report", "Compare two windows of the past: what is better, what is worse, how sure");
  const auto arguments = std::make_shared<ReportArguments>();
  add_options(*command, *arguments);
  command->callback([arguments, &exit_code] {
    const client::AskedWindows& windows = arguments->report.windows;
    if (windows.before.empty() && windows.change.empty() && windows.last.empty()) {
      throw CLI::RequiredError("--before and --after, --change or --last");
    }
    arguments->report.fail_on_worse = !arguments->fail_on.empty();
    exit_code = client::report(history_file(*arguments), arguments->report);
  });
}

}  // namespace ssdpulse::commands
