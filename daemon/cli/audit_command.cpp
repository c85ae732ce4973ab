// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iostream>
#include <memory>
#include <sstream>
#include <utility>

#include "daemon/advice/audit.h"
#include "daemon/advice/history_evidence.h"
#include "daemon/advice/measured.h"
#include "daemon/base/child_process.h"
#include "daemon/base/number_text.h"
#include "daemon/base/outside_text.h"
#include "daemon/cli/command_options.h"
#include "daemon/cli/commands.h"
#include "daemon/cli/daemon_queries.h"
#include "daemon/config/accepted_file.h"
#include "daemon/host/crypt_table.h"
#include "daemon/host/host_reader.h"
#include "daemon/host/inventory.h"
#include "daemon/host/settings_reader.h"
#include "exporters/page/status_json.h"

namespace ssdpulse::cli {

// Gathers this host's settings and what its daemon has measured, and reports what should be changed.

namespace {

/// Nothing if the file has problems, which are then on stderr. If no name was given, a missing file is an empty one.
std::optional<std::vector<model::Acceptance>> acceptances(const AuditOptions& options) {
  const bool is_named = !options.accepted_file.empty();
  const std::string path = is_named ? options.accepted_file : options.findings.root + config::kAcceptedFile;
  if (const auto answers = util::file_answers(path); !answers) {
    std::cerr << answers.error().message << '\n';
    return std::nullopt;
  }
  auto loaded = is_named ? config::load_accepted(path) : config::load_accepted_if_present(path);
  if (!loaded) {
    std::cerr << config::to_string(loaded.error());
    return std::nullopt;
  }
  return std::move(*loaded);
}

/// Returns what is wrong with the history, if it was asked for.
std::string add_pasts(const model::Inventory& inventory, const AuditOptions& options, advice::Facts& facts) {
  if (options.history_file.empty()) {
    return {};
  }
  std::vector<std::string> names;
  for (const model::Device& device : inventory.devices) {
    names.push_back(device.name);
  }
  if (const auto answers = util::file_answers(options.history_file); !answers) {
    return answers.error().message;
  }
  auto history = history::Reader::open(options.history_file);
  auto evidence =
      history ? advice::read_history_evidence(**history, names, std::chrono::system_clock::now(), options.time_scale)
              : tl::make_unexpected(history.error());
  if (!evidence) {
    return evidence.error().message;
  }
  facts.evidence = std::move(*evidence);
  return {};
}

std::string room_text(const std::string& mountpoint) {
  const auto room = host::room_of(mountpoint);
  return room ? fmt::format("{} {} {}", room->size_bytes, room->available_bytes, room->free_bytes) : "";
}

/// Asks every file system how full it is, and says which ones do not answer.
void add_rooms(model::HostSettings& settings) {
  constexpr std::chrono::milliseconds kMinTimeLimit{50};  // once the time for all is used up
  auto left = 5 * util::kPerQuestion;
  std::vector<model::FilesystemRoom> rooms;
  for (model::MountSettings& mount : settings.mounts) {
    const auto begin = std::chrono::steady_clock::now();
    const auto text = util::in_time([&] { return room_text(mount.mountpoint.raw()); },
                                    std::clamp(left, kMinTimeLimit, util::kPerQuestion));
    left -= std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    mount.answers = text || text.error().error_number != ETIMEDOUT;
    if (!text) {
      std::cerr << util::for_terminal(mount.mountpoint) << ": its file system " << text.error().message
                << "; how full it is, is not known\n";
      continue;
    }
    model::FilesystemRoom room{mount.mountpoint};
    if (std::istringstream(*text) >> room.size_bytes >> room.available_bytes >> room.free_bytes) {
      rooms.push_back(std::move(room));
    }
  }
  host::add_rooms(rooms, settings);
}

util::Result<advice::Measured> measured_by(Api& api) {
  const auto answer = api.page("/api/v1/measured");
  if (!answer) {
    return tl::make_unexpected(answer.error());
  }
  auto measured = advice::parse_measured(*answer);
  if (!measured) {
    return tl::make_unexpected(measured.error().within(api.address() + " answered something other than measurements"));
  }
  return measured;
}

util::Result<advice::Facts> gather(const Where& where, const config::Config& config, const AuditOptions& options) {
  const std::string& root = options.findings.root;
  const auto inventory = host::read_inventory({root + "/sys", root + "/proc", root + "/dev"},
                                              {config.devices.include, config.devices.exclude});
  if (!inventory) {
    return tl::make_unexpected(inventory.error());
  }
  advice::Facts facts;
  facts.settings = host::read({root}, *inventory);
  if (root.empty()) {
    add_rooms(facts.settings);
    host::add_crypt_flags(facts.settings);
  }
  facts.enough = options.enough;
  auto api = Api::open(where, config.web);
  const std::string past =
      add_pasts(*inventory, options, facts);  // before the figures: nothing that ends is then in both
  auto measured = api ? measured_by(*api) : tl::make_unexpected(api.error());
  if (measured) {
    facts.measured = std::move(*measured);
    if (auto& seconds = facts.measured.observed_seconds) {
      *seconds /= options.time_scale;
    }
  }
  if (!measured) {
    std::cerr << measured.error().message << "; "
              << (facts.evidence.empty() ? "without measurements nothing is advised" : "judged by the history alone")
              << '\n';
  }
  if (!past.empty()) {
    std::cerr << past << "; evidence is counted since the daemon's start\n";
  }
  return facts;
}

void print_json(const advice::Accepted& result, const advice::Facts& facts, const AuditOptions& options,
                std::ostream& out) {
  auto json = page::findings_json(result.standing);
  json["accepted"] = page::findings_json(result.accepted)["findings"];
  const auto observed = facts.measured.observed_seconds;
  json["observed_seconds"] = observed ? nlohmann::ordered_json(*observed) : nlohmann::ordered_json();
  json["needed_seconds"] = facts.enough.count();
  json["time_scale"] = options.time_scale;
  out << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
}

void print_words(advice::Accepted result, const advice::Facts& facts, const AuditOptions& options, std::ostream& out) {
  if (options.findings.style.all) {
    for (model::Finding& one : result.accepted) {
      one.verdict = model::Verdict::info;
      result.standing.push_back(one);
    }
  }
  print(result.standing, options.findings, out);
  if (!result.accepted.empty()) {
    out << fmt::format("{} accepted by {}\n", result.accepted.size(),
                       options.accepted_file.empty() ? config::kAcceptedFile : options.accepted_file);
  }
  const auto observed = facts.measured.observed_seconds;
  double kept = 0;
  for (const auto& [name, past] : facts.evidence) {
    kept = std::max(kept, past.observed_seconds());
  }
  if (observed || kept > 0) {
    out << (observed ? "the daemon has measured for " + util::duration_text(*observed)
                     : std::string("no daemon answers"))
        << (kept > 0 ? ", the history has " + util::duration_text(kept) + " of the last seven days" : "")
        << fmt::format("; something is advised after {}, what happens once a week after {}\n",
                       util::duration_text(static_cast<double>(facts.enough.count())),
                       util::duration_text(7 * static_cast<double>(facts.enough.count())));
  }
  if (options.time_scale != 1) {
    out << util::time_scale_text(options.time_scale) << '\n';
  }
}

}  // namespace

util::ExitCode audit(const Where& where, const config::Config& config, const AuditOptions& options) {
  const auto accepted = acceptances(options);
  if (!accepted) {
    return util::ExitCode::usage;
  }
  const auto facts = gather(where, config, options);
  if (!facts) {
    std::cerr << facts.error().message << '\n';
    return util::ExitCode::usage;
  }
  const advice::Accepted result = advice::accept(advice::judge(*facts), *accepted, advice::today());
  for (const std::string& problem : result.problems) {
    std::cerr << problem << '\n';
  }
  const bool to_do = advice::has_actionable(result.standing);
  if (options.findings.json) {
    print_json(result, *facts, options, std::cout);
  } else {
    print_words(result, *facts, options, std::cout);
  }
  return to_do ? util::ExitCode::failure : util::ExitCode::success;
}

void print_rules(std::ostream& out) {
  out << "| id | what | advised when | source |\n|---|---|---|---|\n";
  for (const advice::Rule& rule : advice::rules()) {
    out << fmt::format("| {} | {} | {} | {} |\n", rule.id, rule.title, rule.limit, rule.source);
  }
}

namespace {

struct AuditArguments {
  ClientOptions client;
  AuditOptions audit;
  double enough_hours = 24;
  std::string history_directory;
  bool rules = false;
};

ExitCode audit(AuditArguments& arguments) {
  if (arguments.rules) {
    print_rules(std::cout);
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
  return audit(arguments.client.where, config, arguments.audit);
}

}  // namespace

void add_audit(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command =
      app.add_subcommand("audit", "What should be changed on this host, based on what was measured on it");
  const auto arguments = std::make_shared<AuditArguments>();
  AuditOptions& options = arguments->audit;
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

}  // namespace ssdpulse::cli
