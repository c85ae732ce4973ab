// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>

#include "daemon/base/child_process.h"
#include "daemon/base/file_descriptor.h"
#include "daemon/cli/asked_times.h"
#include "daemon/cli/command_options.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/progress_line.h"
#include "daemon/history/history_reader.h"
#include "daemon/host/probe.h"
#include "exporters/report/report_forms.h"

namespace ssdpulse::cli {
namespace {

struct ReportOptions {
  AskedWindows windows;
  std::string device;  // name or serial number; empty: all that were measured in both windows
  bool json = false;   // at most one of these two; else text
  bool markdown = false;
  std::string html_file;  // empty: none
  std::string fail_on;    // worse, or empty
  std::string config_file;
  std::string history_directory;  // empty: as configured
  double time_scale = 1;          // see EvidenceSums: other than 1 in tests
};

using compare::Question;
using compare::Side;
using history::Reader;

/// All that the history may still have.
model::Window all_times(WallTime now) {
  constexpr auto kMaxHistory = std::chrono::hours(24 * 3650);
  const auto end = std::chrono::ceil<std::chrono::minutes>(now);
  return {end - kMaxHistory, end + std::chrono::minutes(1)};
}

/// Of the disk, if this host still has one of this name.
std::optional<double> capacity_of(const std::string& device) {
  constexpr std::size_t kMaxNumberBytes = 32;
  constexpr double kSectorBytes = 512;
  if (device.empty() || device.find('/') != std::string::npos) {
    return std::nullopt;
  }
  const auto text = util::read_file("/sys/class/block/" + device + "/size", kMaxNumberBytes);
  std::uint64_t sectors = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), sectors).ec != std::errc{} || sectors == 0) {
    return std::nullopt;
  }
  return static_cast<double>(sectors) * kSectorBytes;
}

util::Result<Side> side_of(Reader& history, const model::PastDevice& device, const model::Window& window) {
  auto minutes = history.minutes(device, window);
  if (!minutes) {
    return tl::make_unexpected(minutes.error());
  }
  auto series = history.series(device, window);
  if (!series) {
    return tl::make_unexpected(series.error());
  }
  return Side{window, std::move(*minutes), std::move(series->wear)};
}

template <typename Event>
std::vector<Event> within(const std::vector<Event>& events, const model::Window& window) {
  std::vector<Event> result;
  for (const Event& event : events) {
    const auto at = std::chrono::floor<std::chrono::minutes>(event.at);
    if (at >= window.from && at <= window.to) {
      result.push_back(event);
    }
  }
  return result;
}

util::Result<Question> question_of(Reader& history, const model::PastDevice& device, const PastWindows& windows,
                                   const std::vector<model::SettingChange>& settings) {
  Question question{.device = device, .before = {}, .after = {}, .day = {}, .between = {}, .settings = {}, .marks = {}};
  auto after = side_of(history, device, windows.after);
  if (!after) {
    return tl::make_unexpected(after.error());
  }
  question.after = std::move(*after);
  if (windows.before) {
    auto before = side_of(history, device, *windows.before);
    auto between = history.minutes(device, {windows.before->to, windows.after.from});
    if (!before || !between) {
      return tl::make_unexpected(!before ? before.error() : between.error());
    }
    auto day = history.minutes(device, {windows.before->from - std::chrono::days(1), windows.before->from});
    if (!day) {
      return tl::make_unexpected(day.error());
    }
    question.before = std::move(*before);
    question.between = std::move(*between);
    question.day = std::move(*day);
    for (const auto& change : within(settings, {windows.before->from, windows.after.to})) {
      if (change.before && (change.device.empty() || change.identity == device.identity)) {
        question.settings.push_back(change);
      }
    }
  }
  return question;
}

bool measured(const Question& question) {
  return !question.after.minutes.empty() && (!question.before || !question.before->minutes.empty());
}

/// Of what was kept in both windows.
util::Result<void> add_ladders(Reader& history, const PastWindows& windows, report::Report& report) {
  auto after = history.ladder(windows.after);
  auto before = history.ladder(windows.before.value_or(windows.after));
  if (!after || !before) {
    return tl::make_unexpected(!after ? after.error() : before.error());
  }
  if (after->hours > 0 && before->hours > 0) {
    report.ladder_after = std::move(*after);
    if (windows.before) {
      report.ladder_before = std::move(*before);
    }
  }
  return {};
}

util::Result<report::Report> make_report(Reader& history, const ReportOptions& options) {
  const WallTime now = std::chrono::system_clock::now();
  const auto marks = history.marks(all_times(now));
  const auto settings = history.settings(all_times(now));
  const auto devices = history.devices();
  if (!marks || !settings || !devices) {
    return tl::make_unexpected(!marks ? marks.error() : !settings ? settings.error() : devices.error());
  }
  const auto windows = find_windows(options.windows, now, *marks, *settings);
  if (!windows) {
    return util::fail(windows.error().message, EINVAL);
  }
  const std::string host = host::host_name();
  report::Report report{host.empty() ? "this host" : host, now, windows->change, {}, {}};
  if (auto ladders = add_ladders(history, *windows, report); !ladders) {
    return tl::make_unexpected(ladders.error());
  }
  report.marks = within(*marks, {windows->before.value_or(windows->after).from, windows->after.to});
  ProgressLine progress;
  for (const model::PastDevice& device : *devices) {
    if (!options.device.empty() && options.device != device.name && options.device != device.serial) {
      continue;
    }
    auto question = question_of(history, device, *windows, *settings);
    if (!question) {
      return tl::make_unexpected(question.error());
    }
    const bool replaced = std::any_of(devices->begin(), devices->end(), [&](const model::PastDevice& other) {
      return other.name == device.name && other.last > device.last;
    });
    question->time_scale = options.time_scale;
    question->capacity_bytes = replaced ? std::nullopt : capacity_of(device.name);
    if (measured(*question)) {
      auto comparison =
          compare::compare(*question, [&](double share) { progress.show("comparing " + device.name, share); });
      report.devices.push_back({std::move(*question), std::move(comparison)});
    }
  }
  if (report.devices.empty()) {
    return util::fail("nothing was measured in these windows" +
                          (options.device.empty() ? std::string() : " of the device " + options.device) +
                          "; `ssdpulse history` shows what is kept",
                      ENODATA);
  }
  return report;
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
    report::print_markdown(report, std::cout);
  } else if (options.html_file.empty()) {
    report::print_text(report, std::cout);
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

/// Reports what differs between two windows of the history, and how certain that is. `failure` also if a row is worse
/// and that was asked for; `no_data`: nothing was measured in a window; `usage`: the windows are not valid.
ExitCode report(const ReportOptions& options) {
  const AskedWindows& windows = options.windows;
  if (windows.before.empty() && windows.change.empty() && windows.last.empty()) {
    throw CLI::RequiredError("--before and --after, --change or --last");
  }
  const std::string file = history_file(options);
  const auto answers = util::file_answers(file);
  auto history = answers ? Reader::open(file) : tl::make_unexpected(answers.error());
  auto made = history ? make_report(**history, options) : tl::make_unexpected(history.error());
  if (!made) {
    std::cerr << made.error().message << '\n';
    return made.error().error_number == EINVAL    ? ExitCode::usage
           : made.error().error_number == ENODATA ? ExitCode::no_data
                                                  : ExitCode::failure;
  }
  if (!print(*made, options)) {
    return ExitCode::failure;
  }
  const bool worse = std::any_of(made->devices.begin(), made->devices.end(),
                                 [](const report::DeviceReport& device) { return any_worse(device.comparison); });
  return worse && !options.fail_on.empty() ? ExitCode::failure : ExitCode::success;
}

void add_windows(CLI::App& command, AskedWindows& windows) {
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

void add_options(CLI::App& command, ReportOptions& options) {
  add_windows(command, options.windows);
  command.add_option("--device", options.device, "Name or serial number (default: all)");
  auto* json = command.add_flag("--json", options.json, "Print JSON");
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
      "line, or no such windows; 6 nothing was measured in them.");
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
