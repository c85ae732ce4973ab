// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <langinfo.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <fstream>
#include <iostream>
#include <memory>

#include "daemon/base/child_process.h"
#include "daemon/base/number_text.h"
#include "daemon/cli/asked_times.h"
#include "daemon/cli/command_options.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/observed_command.h"
#include "daemon/cli/progress_line.h"
#include "daemon/config/value_text.h"
#include "daemon/host/probe.h"
#include "exporters/report/report_maker.h"

namespace ssdpulse::cli {
namespace {

struct ReportOptions {
  AskedWindows windows;
  std::string device;                // name or serial number; empty: all that were measured in both windows
  std::vector<std::string> command;  // run between the windows; empty: none
  bool all = false;
  bool json = false;  // at most one of these two; else text
  bool markdown = false;
  std::string html_file;  // empty: none
  std::string fail_on;    // worse, or empty
  std::string config_file;
  std::string history_directory;  // empty: as configured
  bool asked_width = false;
  double time_scale = 1;  // see EvidenceSums: other than 1 in tests
};

using history::Reader;
using std::chrono::minutes;

/// All that the history may still have.
model::Window all_times(WallTime now) {
  constexpr auto kMaxHistory = std::chrono::hours(24 * 3650);
  const auto end = std::chrono::ceil<std::chrono::minutes>(now);
  return {end - kMaxHistory, end + std::chrono::minutes(1)};
}

util::Result<report::Report> made(Reader& history, const ReportOptions& options, PastWindows windows) {
  ProgressLine progress;
  return report::make_report(
      history,
      {std::move(windows), options.device, host::host_name(), std::chrono::system_clock::now(), options.time_scale},
      [&](const std::string& device, double share) { progress.show("comparing " + device, share); });
}

/// Of the past.
util::Result<report::Report> past_report(Reader& history, const ReportOptions& options) {
  const WallTime now = std::chrono::system_clock::now();
  const auto marks = history.marks(all_times(now));
  const auto settings = history.settings(all_times(now));
  if (!marks || !settings) {
    return tl::make_unexpected(!marks ? marks.error() : settings.error());
  }
  const auto windows = find_windows(options.windows, now, *marks, *settings);
  return windows ? made(history, options, *windows) : util::fail(windows.error().message, EINVAL);
}

bool print(const report::Report& report, const ReportOptions& options) {
  if (!options.html_file.empty()) {
    std::ofstream file(options.html_file, std::ios::binary | std::ios::trunc);
    report::print_html(report, file);
    if (!file.flush()) {
      std::cerr << "--html: cannot write " << options.html_file << '\n';
      return false;
    }
  }
  if (options.json) {
    report::print_json(report, std::cout);
  } else if (options.markdown) {
    report::print_markdown(report, std::cout, {.all = options.all});
  } else if (options.html_file.empty()) {
    std::setlocale(LC_CTYPE, "");
    report::print_text(report, std::cout,
                       {.all = options.all, .blocks = std::string_view(::nl_langinfo(CODESET)) == "UTF-8"});
  }
  return static_cast<bool>(std::cout.flush());
}

/// The database in the directory that was named, or else in the configured one.
std::string history_file(const ReportOptions& options) {
  const std::string configured = config_in(options.config_file).history.directory;
  const std::string& directory = options.history_directory.empty() ? configured : options.history_directory;
  if (directory.empty()) {
    throw CLI::ParseError("no history is kept: history.directory is empty", CLI::ExitCodes::ValidationError);
  }
  return history_file_in(directory);
}

bool failed(const report::Report& report, const ReportOptions& options) {
  return !options.fail_on.empty() &&
         std::any_of(report.devices.begin(), report.devices.end(),
                     [](const report::DeviceReport& device) { return any_worse(device.comparison); });
}

util::Result<std::unique_ptr<Reader>> open_history(const ReportOptions& options) {
  const std::string file = history_file(options);
  const auto answers = util::file_answers(file);
  return answers ? Reader::open(file) : tl::make_unexpected(answers.error());
}

// Around a command.

constexpr minutes kShortest{3};  // windows that find what became three times as slow: deploy/docs/report.md
constexpr minutes kLongest{60};

/// The first and the last minute that any disk has.
struct MinuteRange {
  model::PastTime first = model::PastTime::max();
  model::PastTime last = model::PastTime::min();
};
MinuteRange kept_in(Reader& history) {
  MinuteRange kept;
  if (const auto devices = history.devices()) {
    for (const model::PastDevice& device : *devices) {
      kept.first = std::min(kept.first, device.first);
      kept.last = std::max(kept.last, device.last);
    }
  }
  return kept;
}

/// Waits for a time that is shown as progress. The signal that came, if one did.
std::optional<int> wait_for(ObservedCommand& observed, const std::string& what, WallTime from, WallTime to,
                            const std::function<bool()>& done) {
  ProgressLine progress;
  return observed.wait_until([&] {
    const auto now = std::chrono::system_clock::now();
    const double share = std::chrono::duration<double>(now - from) / std::chrono::duration<double>(to - from);
    progress.show(what, std::clamp(share, 0.0, 1.0));
    return done();
  });
}

/// Whole minutes: the one in which the command began or ended is neither before nor after it.
PastWindows windows_of(const ObservedCommand::Ran& ran, minutes length, const std::string& command) {
  const model::PastTime begin = std::chrono::floor<minutes>(ran.began);
  const model::PastTime end = std::chrono::floor<minutes>(ran.ended) + minutes(1);
  return {model::Window{begin - length, begin}, {end, end + length}, "command: " + command, model::Window{begin, end}};
}

void add_command_notes(report::Report& report, const ObservedCommand::Ran& ran) {
  const double seconds = std::chrono::duration<double>(ran.ended - ran.began).count();
  for (report::DeviceReport& device : report.devices) {
    auto& notes = device.comparison.notes;
    notes.push_back(
        {"command", fmt::format("The command ran for {}{}. \"During\" is the whole minutes in which it ran.",
                                util::duration_text(seconds),
                                ran.status == 0 ? "" : fmt::format(" and ended with status {}", ran.status))});
  }
}

int command_report(const ReportOptions& options) {
  const auto width = config::parse_duration(options.windows.width);
  if (!width) {
    throw CLI::ValidationError("--width", width.error().message);
  }
  const config::Config config = config_in(options.config_file);
  if (auto api = Api::open({}, config.web); api && api->nobody_is_there()) {
    std::cerr << "no daemon answers at " << api->address()
              << ": nothing would be measured. Start it (systemctl start ssdpulse), then run this again\n";
    return kNotRun;
  }
  ObservedCommand observed;
  auto history = open_history(options);
  if (!history) {
    std::cerr << history.error().message << '\n';
    return kNotRun;
  }
  const auto began = std::chrono::system_clock::now();
  const minutes least = options.asked_width ? std::max(std::chrono::floor<minutes>(*width), minutes(1)) : kShortest;
  const auto enough = [&] {
    const auto now = std::chrono::floor<minutes>(std::chrono::system_clock::now());
    // The newest minute may not be on the disk yet.
    return minutes_kept(**history, {now - least - minutes(1), now}) >= static_cast<std::size_t>(least.count()) ||
           std::chrono::system_clock::now() > began + least + minutes(1);  // idle disks may have no minutes
  };
  if (const auto signal =
          wait_for(observed, "measuring before the command", began, began + least + minutes(1), enough)) {
    return kKilledBy + *signal;
  }
  const auto ran = observed.run(options.command, options.json || options.markdown);
  if (!ran) {
    std::cerr << ran.error().message << '\n';
    return ran.error().error_number;
  }
  const minutes length = options.asked_width
                             ? least
                             : std::clamp(std::chrono::ceil<minutes>(ran->ended - ran->began), kShortest, kLongest);
  PastWindows windows = windows_of(*ran, length, options.command[0]);
  constexpr std::chrono::seconds kWritten{30};  // within which a minute is on the disk
  const auto late = std::chrono::steady_clock::now() + (windows.after.to - ran->ended) + kWritten;
  const auto measured = [&] {
    return std::chrono::system_clock::now() >= windows.after.to &&
           (kept_in(**history).last >= windows.after.to - minutes(1) || std::chrono::steady_clock::now() > late);
  };
  std::cerr << "ssdpulse: the command ended with status " << ran->status << "; measuring until "
            << report::minute_text(windows.after.to) << " (Ctrl-C: report now)\n";
  if (wait_for(observed, "measuring after the command", ran->ended, windows.after.to, measured)) {
    const auto now = std::chrono::floor<minutes>(std::chrono::system_clock::now());
    windows.after.to = std::clamp<model::PastTime>(now, windows.after.from + minutes(1), windows.after.to);
  }
  auto report = made(**history, options, std::move(windows));
  if (!report) {
    std::cerr << report.error().message << '\n';
    return ran->status != 0 ? ran->status : kNotRun;
  }
  add_command_notes(*report, *ran);
  const bool printed = print(*report, options);
  return ran->status != 0 ? ran->status : !printed ? kNotRun : failed(*report, options) ? 1 : 0;
}

/// Reports what differs between two windows of the history, and how certain that is. `failure` also if a row is worse
/// and that was asked for; `no_data`: nothing was measured in a window; `usage`: the windows are not valid. Around a
/// command: its status.
ExitCode report(const ReportOptions& options) {
  const AskedWindows& windows = options.windows;
  const bool asked = !windows.before.empty() || !windows.change.empty() || !windows.last.empty();
  if (!options.command.empty()) {
    if (asked) {
      throw CLI::ValidationError("-- COMMAND",
                                 "the windows are around it: leave out --before, --after, --change, --last");
    }
    return static_cast<ExitCode>(command_report(options));
  }
  if (!asked) {
    throw CLI::RequiredError("--before and --after, --change, --last or -- COMMAND");
  }
  auto history = open_history(options);
  auto made = history ? past_report(**history, options) : tl::make_unexpected(history.error());
  if (!made) {
    std::cerr << made.error().message << '\n';
    return made.error().error_number == EINVAL    ? ExitCode::usage
           : made.error().error_number == ENODATA ? ExitCode::no_data
                                                  : ExitCode::failure;
  }
  return !print(*made, options) || failed(*made, options) ? ExitCode::failure : ExitCode::success;
}

CLI::Option* add_windows(CLI::App& command, AskedWindows& windows) {
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
  return command.add_option("--width", windows.width,
                            "The most that --change takes on either side (default 24h); around a command, what is "
                            "taken (default: as long as it runs, from 3m to 1h)");
}

void add_options(CLI::App& command, ReportOptions& options) {
  CLI::Option* width = add_windows(command, options.windows);
  width->each([&options](const std::string&) { options.asked_width = true; });
  command.add_option("COMMAND", options.command,
                     "After --: run it, and compare the time before it with the time after it, and while it ran");
  command.add_option("--device", options.device, "Name or serial number (default: all)");
  auto* json = command.add_flag("--json", options.json, "Print JSON");
  command.add_flag("--all", options.all, "Show all rows of all disks, not only what matters most")->excludes(json);
  command.add_flag("--markdown", options.markdown, "Print Markdown")->excludes(json);
  command.add_option("--html", options.html_file, "Write one page with the heatmaps of both windows to this file");
  command.add_option("--fail-on", options.fail_on, "worse: exit status 1 if any row is worse")
      ->check(CLI::IsMember({"worse"}));
  command.add_option("--config,-c", options.config_file, "The daemon's configuration file, for its history");
  command.add_option("--history.directory", options.history_directory, "Directory of the history");
  add_time_scale(command, options.time_scale);
  command.footer(
      "Exit status: 0 reported; 1 a row is worse (with --fail-on worse), or the history cannot be read; 2 wrong "
      "command\n"
      "line, or no such windows; 6 nothing was measured in them. With a command: its own, 128 and the number of the "
      "signal\n"
      "that killed it, 125 if there is no report, 126 if it cannot be run, 127 if it is not found.");
}

}  // namespace

void add_report(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command =
      app.add_subcommand("report", "Compare two windows of the past: what is better, what is worse, how sure");
  const auto options = std::make_shared<ReportOptions>();
  add_options(*command, *options);
  command->callback([options, &exit_code] { exit_code = report(*options); });
}

}  // namespace ssdpulse::cli
