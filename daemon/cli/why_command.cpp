// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <memory>

#include "daemon/base/number_text.h"
#include "daemon/base/outside_text.h"
#include "daemon/cli/asked_times.h"
#include "daemon/cli/command_output.h"
#include "daemon/cli/commands.h"
#include "daemon/host/processes.h"

namespace ssdpulse::cli {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& at(const Json& object, const char* name) {
  static const auto& none = *new Json();
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}

std::string latency(const Json& seconds) {
  const double value = seconds.is_number() ? seconds.get<double>() : 0;
  return value < 1e-3 ? util::number_text(value * 1e6) + " us"
         : value < 1  ? util::number_text(value * 1e3) + " ms"
                      : util::number_text(value) + " s";
}

std::string lines(const char* title, const Json& list) {
  std::string text;
  for (const Json& line : list) {
    text += line.is_string() ? "    - " + line.get<std::string>() + "\n" : "";
  }
  return text.empty() ? text : fmt::format("  {}:\n{}", title, text);
}

std::string spike_evidence(const Json& spike) {
  struct Group {
    const char* field;
    const char* title;
  };
  constexpr auto kGroups = std::to_array<Group>({{"evidence", "Evidence for it"},
                                                 {"ruled_out", "What was ruled out"},
                                                 {"missing", "What gave no clue"},
                                                 {"other", "Other figures"}});
  std::string operations = util::plural_text(text_of(spike, "operation"));
  operations[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(operations[0])));
  const Json& usual = at(spike, "baseline_seconds");
  std::string text =
      fmt::format("{}: p99 of the worst second {}{}, {}\n", operations, latency(at(spike, "peak_seconds")),
                  usual.is_number() ? fmt::format(" (usual {})", latency(usual)) : "", text_of(spike, "words"));
  for (const auto& [field, title] : kGroups) {
    text += lines(title, at(spike, field));
  }
  return text;
}

/// "dirty_bytes", 2e6: "dirty: 2 MB". A name ends with its unit.
std::string figure_text(std::string name, double value) {
  struct Unit {
    std::string_view suffix;
    double divisor;
    std::string_view text;
  };
  constexpr auto kUnits = std::to_array<Unit>(
      {{"_ratio", 0.01, " % of the time"}, {"_bytes", 1e6, " MB"}, {"_per_second", 1, " a second"}});
  std::string text = util::number_text(value);
  for (const auto& [suffix, divisor, unit] : kUnits) {
    if (name.size() > suffix.size() && name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0) {
      name.resize(name.size() - suffix.size());
      text = util::number_text(value / divisor) + std::string(unit);
      break;
    }
  }
  if (name == "baseline_unexplained") {
    name = "usually unexplained";
  }
  std::replace(name.begin(), name.end(), '_', ' ');
  return util::for_terminal(name) + ": " + text;
}

/// What holds up I/O above the drives, by the kernel's figures.
std::string wait_evidence(const Json& wait) {
  std::string text;
  for (const auto& [name, value] : at(wait, "evidence").items()) {
    const bool is_code = name == "limit_kind" || name == "inodes_full" || name == "layer_kind" || name == "operation" ||
                         name == "own_is_exact";  // the sentence says it in words
    text += value.is_number() && !is_code ? fmt::format("    - {}\n", figure_text(name, value.get<double>())) : "";
  }
  if (const std::string command = text_of(wait, "command"); !command.empty()) {
    text += fmt::format("    - command: {}\n", util::for_terminal(command));
  }
  const std::string source = util::for_terminal(text_of(wait, "source"));
  return text.empty() && source.empty() ? text : fmt::format("  Evidence for it ({}):\n{}", source, text);
}

bool is_of_this_host(const std::string& address) {
  constexpr auto kLocal = std::to_array<std::string_view>({"unix:", "127.0.0.1", "localhost", "[::1]"});
  return address.empty() || std::any_of(kLocal.begin(), kLocal.end(), [&](std::string_view local) {
           return address.find(local) != std::string::npos;
         });
}

/// Who waits at this moment, where that is visible: for what goes on above the drives.
std::string blocked_text() {
  constexpr std::size_t kMaxTasks = 12;
  std::string text;
  for (const host::BlockedTask& task :
       ::geteuid() == 0 ? host::blocked_tasks("/proc", kMaxTasks) : std::vector<host::BlockedTask>{}) {
    text += fmt::format("    - {} ({}){}\n", util::for_terminal(task.name), task.task,
                        task.waits_in.empty() ? "" : " in " + util::for_terminal(task.waits_in));
  }
  return text.empty() ? text : "  Tasks that wait (state D) on this host:\n" + text;
}

}  // namespace

std::string evidence_text(const Json& answer) {
  std::string text = wait_evidence(at(at(answer, "why"), "wait"));
  const Json& incident = at(answer, "incident");
  const bool earlier = text_of(at(answer, "why"), "when") == "earlier" && text.empty();
  text += earlier ? "Of that earlier incident:\n" : "";
  for (const Json& spike : at(incident.is_null() ? at(at(answer, "why"), "incident") : incident, "spikes")) {
    text += spike_evidence(spike);
  }
  return text;
}

namespace {

struct WhyOptions {
  ClientOptions client;
  std::string at;        // see asked_times.h; empty: now
  bool verbose = false;  // also the evidence
};

/// Prints the first line, and what to do next, for now or for the minute that holds `at`. `usage`: `at` is not a time;
/// `no_data`: nothing is known about it, and the answer explains why.
ExitCode ask_why(const WhyOptions& options) {
  const config::Config config = config_of(options.client);
  std::string path = "why";
  if (!options.at.empty()) {
    const auto time = parse_time(options.at, std::chrono::system_clock::now());
    if (!time) {
      std::cerr << "--at: " << time.error().message << '\n';
      return ExitCode::usage;
    }
    path += "?at=" + std::to_string(std::chrono::system_clock::to_time_t(*time));
  }
  auto api = Api::open(options.client.where, config.web);
  const auto answer = api ? api->get(path) : tl::make_unexpected(api.error());
  if (!answer) {
    return fail(answer.error());
  }
  const auto why = answer->value("why", Json::object());
  const bool known = why.value("verdict", "") != "unknown";
  if (options.client.json) {
    print_json(*answer, std::cout);
    return known ? ExitCode::success : ExitCode::no_data;
  }
  std::cout << why.value("sentence", "") << '\n';
  if (const std::string next = why.value("next", ""); !next.empty()) {
    std::cout << "Next: " << next << '\n';
  }
  if (options.verbose) {
    std::cout << evidence_text(*answer);
    std::cout << (at(why, "wait").is_object() && text_of(why, "when") == "now" &&
                          is_of_this_host(options.client.where.address)
                      ? blocked_text()
                      : "");
    std::cout << (text_of(why, "runbook").empty() ? "" : "Runbook: " + text_of(why, "runbook") + "\n");
  }
  return known ? ExitCode::success : ExitCode::no_data;
}

}  // namespace

void add_why(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("why", "Which drive is slow, since when, why, and what to do next");
  const auto options = std::make_shared<WhyOptions>();
  add_client_options(*command, options->client);
  command->add_option("--at", options->at,
                      "Ask about a minute in the past: 03:00, 2026-11-23T03:00:12, -10m or @SECONDS");
  command->add_flag("--verbose,-v", options->verbose, "Also show the evidence");
  command->callback([options, &exit_code] { exit_code = ask_why(*options); });
}

}  // namespace ssdpulse::cli
