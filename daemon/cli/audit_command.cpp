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
#include "daemon/cli/command_output.h"
#include "daemon/cli/commands.h"
#include "daemon/config/accepted_file.h"
#include "daemon/host/crypt_table.h"
#include "daemon/host/host_reader.h"
#include "daemon/host/inventory.h"
#include "daemon/host/settings_reader.h"
#include "exporters/page/status_json.h"

namespace ssdpulse::cli {
namespace {

struct AuditOptions {
  FindingsOptions findings;
  std::string accepted_file;      // empty: that of the service, if it exists
  double enough_hours = 24;       // of measuring, before something is advised
  std::string history_directory;  // empty: as configured
  double time_scale = 1;          // see EvidenceSums: other than 1 in tests
  bool rules = false;             // lists them instead
};

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

/// Returns what is wrong with the history, if one is kept.
std::string add_pasts(const model::Inventory& inventory, const config::Config& config, const AuditOptions& options,
                      advice::Facts& facts) {
  const std::string& directory =
      options.history_directory.empty() ? config.history.directory : options.history_directory;
  if (directory.empty() || !options.findings.root.empty()) {
    return {};
  }
  const std::string file = history_file_in(directory);
  std::vector<std::string> names;
  for (const model::Device& device : inventory.devices) {
    names.push_back(device.name);
  }
  if (const auto answers = util::file_answers(file); !answers) {
    return answers.error().message;
  }
  auto history = history::Reader::open(file);
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

/// This host's settings and what its daemon has measured.
util::Result<advice::Facts> gather(const config::Config& config, const AuditOptions& options) {
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
  facts.enough = std::chrono::seconds(static_cast<std::int64_t>(options.enough_hours * 3600));
  auto api = Api::open(options.findings.client.where, config.web);
  // Before the figures: nothing that ends is then in both.
  const std::string past = add_pasts(*inventory, config, options, facts);
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

void print_as_json(const advice::Accepted& result, const advice::Facts& facts, const AuditOptions& options) {
  auto json = page::findings_json(result.standing);
  json["accepted"] = page::findings_json(result.accepted)["findings"];
  const auto observed = facts.measured.observed_seconds;
  json["observed_seconds"] = observed ? nlohmann::ordered_json(*observed) : nlohmann::ordered_json();
  json["needed_seconds"] = facts.enough.count();
  json["time_scale"] = options.time_scale;
  print_json(json, std::cout);
}

void print_as_text(advice::Accepted result, const advice::Facts& facts, const AuditOptions& options) {
  std::ostream& out = std::cout;
  if (options.findings.style.all) {
    for (model::Finding& finding : result.accepted) {
      finding.verdict = model::Verdict::info;
      result.standing.push_back(finding);
    }
  }
  print_findings(result.standing, options.findings, out);
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
        << fmt::format("; advice needs {} of measurements, or {} for what happens once a week\n",
                       util::duration_text(static_cast<double>(facts.enough.count())),
                       util::duration_text(7 * static_cast<double>(facts.enough.count())));
  }
  if (options.time_scale != 1) {
    out << util::time_scale_text(options.time_scale) << '\n';
  }
}

/// Every rule, with its limit and its source, as a Markdown table.
void print_rules() {
  std::cout << "| id | what | advised when | source |\n|---|---|---|---|\n";
  for (const advice::Rule& rule : advice::rules()) {
    std::cout << fmt::format("| {} | {} | {} | {} |\n", rule.id, rule.title, rule.limit, rule.source);
  }
}

/// Reports what should be changed. `success`: nothing; `failure`: something; `usage`: a wrong file, or devices that
/// cannot be listed.
ExitCode audit(const AuditOptions& options) {
  if (options.rules) {
    print_rules();
    return ExitCode::success;
  }
  const config::Config config = config_of(options.findings.client);
  const auto accepted = acceptances(options);
  if (!accepted) {
    return ExitCode::usage;
  }
  const auto facts = gather(config, options);
  if (!facts) {
    return fail(facts.error(), ExitCode::usage);
  }
  const advice::Accepted result = advice::accept(advice::judge(*facts), *accepted, advice::today());
  for (const std::string& problem : result.problems) {
    std::cerr << problem << '\n';
  }
  if (options.findings.client.json) {
    print_as_json(result, *facts, options);
  } else {
    print_as_text(result, *facts, options);
  }
  return advice::has_actionable(result.standing) ? ExitCode::failure : ExitCode::success;
}

}  // namespace

void add_audit(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command =
      app.add_subcommand("audit", "What should be changed on this host, based on what was measured on it");
  const auto shared = std::make_shared<AuditOptions>();
  AuditOptions& options = *shared;
  add_client_options(*command, options.findings.client);
  command->add_flag("--markdown", options.findings.markdown, "Print Markdown");
  command->add_flag("--all", options.findings.style.all, "Also show what is fine, does not apply or was accepted");
  command->add_flag("--verbose,-v", options.findings.style.verbose, "Show everything that is known about each finding");
  command->add_option("--accepted", options.accepted_file,
                      "File of findings that were accepted (default /etc/ssdpulse/accepted.yaml)");
  command
      ->add_option("--min-observation", options.enough_hours,
                   "Hours that must have been measured before something is advised, and seven times as long where it "
                   "may happen once a week (default 24)")
      ->check(CLI::Range(0.0, 1e6));
  command->add_option("--history.directory", options.history_directory, "Directory of the history");
  add_time_scale(*command, options.time_scale);
  command->add_flag("--rules", options.rules, "List the rules, with their limits and sources");
  command->add_option("--root", options.findings.root, "Directory with the sys, proc and etc of another host")
      ->group("");
  command->footer("Exit status: 0 nothing to do; 1 something is advised, or in danger; 2 wrong command line or file.");
  command->callback([shared, &exit_code] { exit_code = audit(*shared); });
}

}  // namespace ssdpulse::cli
