// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>

#include "daemon/base/child_process.h"
#include "daemon/cli/asked_times.h"
#include "daemon/cli/command_output.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/history_text.h"
#include "daemon/cli/progress_line.h"
#include "daemon/history/file_tools.h"
#include "daemon/history/history_reader.h"
#include "exporters/page/history_json.h"

namespace ssdpulse::cli {
namespace {

struct HistoryOptions {
  ClientOptions client;
  std::string device;  // name, serial number or WWID; empty: lists the devices
  std::string from;    // see asked_times.h; empty: a day before `to`
  std::string to;      // empty: now
  std::size_t points = 48;
  bool csv = false;
  bool by_tenant = false;  // of one device: what each tenant did
  std::optional<std::string> directory;
  std::string file;  // of what follows; empty: the one in the directory
  bool check = false;
  std::string backup;
  std::string salvage;
};

// What is done with a history file as a whole. No daemon is asked: one may be writing to it.

void print(const std::string& path, const history::FileReport& report) {
  constexpr double kMebibyte = 1 << 20U;
  std::cout << fmt::format("{}: {:.1f} MiB\n", path, static_cast<double>(report.bytes) / kMebibyte);
  for (const auto& [table, rows] : report.rows) {
    std::cout << fmt::format("  {:<14} {:>10} rows\n", table, rows);
  }
  std::cout << (report.undone ? "  one unfinished transaction is left out (its writer was killed); the daemon rolls it "
                                "back when it starts\n"
                              : "");
  for (const std::string& problem : report.problems) {
    std::cout << "  problem: " << problem << '\n';
  }
  std::cout << (report.problems.empty()
                    ? "  whole: every page in use is as it was written, and every row is accounted for\n"
                    : "  save what is readable: ssdpulse history --salvage NEW_FILE --file " + path + '\n');
}

/// Checks a history file in full, and prints what is in it and what is wrong; `success`: nothing is.
ExitCode check_history_file(const std::string& path) {
  std::cerr << (::isatty(STDERR_FILENO) == 0 ? "" : "reading the whole file; a daemon's rows wait meanwhile\n");
  const auto report = history::check_file(path);
  if (!report) {
    return fail(report.error());
  }
  print(path, *report);
  return std::cout.flush() && report->problems.empty() ? ExitCode::success : ExitCode::failure;
}

/// Makes a consistent copy of it, also while a daemon writes to it. `to` must not exist.
ExitCode back_up_history_file(const std::string& path, const std::string& to) {
  ProgressLine progress;
  const auto done = history::back_up(path, to, [&](double share) { progress.show("copying " + path, share); });
  return done ? ExitCode::success : fail(done.error());
}

/// Writes what is readable in a damaged file to a new one, and prints how many rows are lost.
ExitCode salvage_history_file(const std::string& path, const std::string& to) {
  const auto lost = history::salvage_file(path, to);
  if (!lost) {
    return fail(lost.error());
  }
  std::cout << to << ": everything that is readable in " << path << "; rows lost: " << *lost << '\n';
  return std::cout.flush() ? ExitCode::success : ExitCode::failure;
}

// Asks the daemon, and opens the file itself only if none answers; both return the same JSON, which is then shown.

using Answer = util::Result<nlohmann::json>;

struct Asked {
  model::Window window;
  std::string device;
  std::size_t points = 0;
};

util::Result<WallTime> time_or(const std::string& option, const std::string& text, WallTime otherwise) {
  if (text.empty()) {
    return otherwise;
  }
  auto time = parse_time(text, std::chrono::system_clock::now());
  return time ? time : util::fail(option + ": " + time.error().message);
}

util::Result<Asked> asked_of(const HistoryOptions& options) {
  const auto to = time_or("--to", options.to, std::chrono::system_clock::now());
  const auto from = to ? time_or("--from", options.from, *to - std::chrono::hours(24)) : to;
  if (!from) {
    return tl::make_unexpected(from.error());
  }
  Asked asked{{std::chrono::floor<std::chrono::minutes>(*from), std::chrono::ceil<std::chrono::minutes>(*to)},
              options.device,
              options.points};
  return asked.window.from < asked.window.to ? util::Result<Asked>(asked) : util::fail("--from: must be before --to");
}

Answer ask_daemon(Api& api, const Asked& asked) {
  const auto seconds = [](model::PastTime time) {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
  };
  std::string path = "history";
  path += asked.device.empty() ? "" : "/" + escaped(asked.device);
  return api.get(path + "?from=" + seconds(asked.window.from) + "&to=" + seconds(asked.window.to) +
                 "&points=" + std::to_string(asked.points));
}

Answer read_file(const std::string& path, const Asked& asked) {
  if (const auto answers = util::file_answers(path); !answers) {
    return tl::make_unexpected(answers.error());
  }
  auto reader = history::Reader::open(path);
  if (!reader) {
    return tl::make_unexpected(reader.error());
  }
  const auto parsed = [](const std::string& text) { return nlohmann::json::parse(text, nullptr, false); };
  if (!asked.device.empty()) {
    return (*reader)->series(asked.device, asked.window, asked.points).map([&](const model::Series& series) {
      return parsed(page::history_json(series));
    });
  }
  std::uint64_t left_out = 0;
  const auto devices = (*reader)->devices(&left_out);
  const auto settings = (*reader)->settings(asked.window);
  const auto marks = (*reader)->marks(asked.window);
  if (!devices || !settings || !marks) {
    return tl::make_unexpected(!devices ? devices.error() : !settings ? settings.error() : marks.error());
  }
  return parsed(page::history_list_json(*devices, *settings, *marks, left_out));
}

Answer find(const Where& where, const config::Config& config, const Asked& asked) {
  auto api = Api::open(where, config.web);
  auto answer = api ? ask_daemon(*api, asked) : tl::make_unexpected(api.error());
  const bool nobody = !answer && (!api || answer.error().error_number == kNobodyAnswers);
  if (!nobody || !where.address.empty() || config.history.directory.empty()) {
    return answer;
  }
  const std::string path = history_file_in(config.history.directory);
  auto from_file = read_file(path, asked);
  if (!from_file) {
    return util::fail(answer.error().message + "; and " + from_file.error().message);
  }
  std::cerr << (!api || answer.error().error_number != kNobodyAnswers ? answer.error().message : "no daemon answers")
            << ": read from " << path << '\n';
  return from_file;
}

/// The past of one device, or the list of known ones; from the daemon, else from its history file.
ExitCode print_history(const config::Config& config, const HistoryOptions& options) {
  const auto asked = asked_of(options);
  if (!asked) {
    return fail(asked.error(), ExitCode::usage);
  }
  const auto answer = find(options.client.where, config, *asked);
  if (!answer) {
    return fail(answer.error());
  }
  if (options.client.json) {
    print_json(*answer, std::cout);
  } else if (options.by_tenant) {
    std::cout << (options.csv ? history_by_tenant_csv(*answer) : history_by_tenant_text(*answer));
  } else if (options.csv) {
    std::cout << history_csv(*answer);
  } else {
    std::cout << (options.device.empty() ? history_list_text(*answer) : history_text(*answer));
  }
  return std::cout.flush() ? ExitCode::success : ExitCode::failure;
}

ExitCode run(const HistoryOptions& options) {
  config::Config config = config_of(options.client);
  config.history.directory = options.directory.value_or(config.history.directory);
  const std::string file = options.file.empty() ? history_file_in(config.history.directory) : options.file;
  if (options.check) {
    return check_history_file(file);
  }
  if (!options.backup.empty()) {
    return back_up_history_file(file, options.backup);
  }
  if (!options.salvage.empty()) {
    return salvage_history_file(file, options.salvage);
  }
  return print_history(config, options);
}

}  // namespace

void add_history(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("history", "Show the past of a device, as far back as the history reaches");
  const auto options = std::make_shared<HistoryOptions>();
  add_client_options(*command, options->client);
  command->add_option("--device", options->device,
                      "Its name, serial number or WWID (default: which devices there are)");
  command->add_option("--from", options->from, "Times as in `why --at`: 03:00, 2026-11-23T03:00, -10m");
  command->add_option("--to", options->to, "Until when (default now; --from: a day before)");
  command->add_option("--points", options->points, "At most this many lines, 2 to 2000 (default 48)")
      ->check(CLI::Range(2, 2000));
  command
      ->add_option_function<std::string>(
          "--by", [options](const std::string&) { options->by_tenant = true; },
          "tenant: what each tenant did, instead of what the device did")
      ->check(CLI::IsMember({"tenant"}))
      ->needs("--device");
  command->add_flag("--csv", options->csv, "Print every figure of each point as CSV")->excludes("--json");
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
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace ssdpulse::cli
