// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "daemon/advice/cost_parts.h"
#include "daemon/advice/doctor.h"
#include "daemon/base/child_process.h"
#include "daemon/base/number_text.h"
#include "daemon/base/text_table.h"
#include "daemon/cli/command_output.h"
#include "daemon/cli/commands.h"
#include "daemon/host/inventory.h"
#include "daemon/host/probe.h"
#include "exporters/page/status_json.h"

namespace ssdpulse::cli {

void print_findings(const terminal::Findings& findings, const FindingsOptions& options, std::ostream& out) {
  if (options.client.json) {
    print_json(page::findings_json(findings), out);
  } else if (options.markdown) {
    terminal::print_findings_markdown(findings, options.style, out);
  } else {
    terminal::print_findings(findings, options.style, out);
  }
}

namespace {

using nlohmann::json;

std::vector<config::ListenAddress> addresses_of(const config::Web& web) {
  std::vector<config::ListenAddress> addresses;
  for (const std::string& address : web.listen_address) {
    if (auto parsed = config::parse_listen_address(address); parsed && parsed->port != 0) {
      addresses.push_back(std::move(*parsed));
    }
  }
  return addresses;
}

std::vector<model::Device> measured_devices(const config::Devices& chosen, const std::string& root) {
  const auto inventory =
      host::read_inventory({root + "/sys", root + "/proc", root + "/dev"}, {chosen.include, chosen.exclude});
  std::vector<model::Device> devices;
  if (inventory) {
    std::copy_if(inventory->devices.begin(), inventory->devices.end(), std::back_inserter(devices),
                 [](const model::Device& device) { return device.coverage == model::Coverage::measured; });
  }
  return devices;
}

/// Empty, and said on stderr, if its file system does not answer.
std::string if_it_answers(const std::string& root, const std::string& path) {
  const auto answers = path.empty() ? util::Result<void>() : util::file_answers(root + path);
  if (!answers) {
    std::cerr << answers.error().message << '\n';
  }
  return answers ? path : "";
}

advice::Findings of_host(const config::Config& config, const std::string& root, const util::Error& error) {
  const bool somebody = error.error_number != kNobodyAnswers;
  advice::Findings all{advice::unanswered(somebody ? std::optional(error.error_number) : std::nullopt, error.message)};
  model::HostProbe host = host::probe_host(
      {root}, {if_it_answers(root, config.history.directory), if_it_answers(root, config.nvme.reader_socket)});
  if (!config.history.directory.empty() && !host.history_directory) {
    model::PathProbe silent;
    silent.path = config.history.directory;
    silent.answers = false;
    host.history_directory = std::move(silent);
  }
  const advice::Start start{std::move(host), somebody ? std::vector<config::ListenAddress>{} : addresses_of(config.web),
                            measured_devices(config.devices, root), config.history.size};
  for (model::Finding& one : advice::examine(start)) {
    all.push_back(std::move(one));
  }
  return all;
}

std::string text_in(const json& of, const char* key) {
  return of.contains(key) && of[key].is_string()
             ? util::for_terminal(of[key].get<std::string>(), util::kLongestSentence)
             : "";
}

/// Empty for what is not known, which print_table() shows as "-".
std::string figure_in(const json& of, const char* key, double scale = 1) {
  return of.contains(key) && of[key].is_number() ? util::number_text(of[key].get<double>() * scale) : "";
}

constexpr double kPercent = 100;

void print_total(std::string_view of, const json& total, std::ostream& out) {
  if (!total.is_object()) {
    out << of << ": not known, because what a run costs could not be measured\n";
    return;
  }
  const std::string lower = figure_in(total, "lower", kPercent);
  const std::string upper = figure_in(total, "upper", kPercent);
  out << of << ": " << figure_in(total, "cpu_ratio", kPercent) << " %"
      << (lower == upper ? "" : fmt::format(" ({} to {} %)", lower, upper)) << '\n';
}

static_assert(advice::kEstimateFactor == 3, "the next text says so");
/// In the order of the names of advice::CostSource.
constexpr auto kKnownBy = util::names<advice::CostSource>({
    "estimate: runs, counted, times what one costs, measured at the start: within a factor of 3; shares by overhead.md",
    "account: the kernel's own (kernel.bpf_stats_enabled)",
    "account_share: a part of that, by the shares in overhead.md",
    "elsewhere: I/Os, counted, times what one cost on the machine of overhead.md; not measured on this host",
    "scheduler: CPU time of the daemon's threads",
    "unknown: not in the totals; kernel.bpf_stats_enabled=1 would tell of programs in the kernel",
});

}  // namespace

void print_cost(const nlohmann::json& answer, std::ostream& out) {
  const double seconds = answer.value("seconds", 0.0);
  const json parts = answer.value("parts", json::array());
  if (seconds <= 0 || parts.empty()) {
    out << "not known yet: the daemon started less than 15 seconds ago; ask again\n";
    return;
  }
  std::vector<std::vector<std::string>> table{
      {"PART", "TELLS", "CHANGED BY", "PER SECOND", "NS EACH", "% OF CPUS", "KNOWN BY"}};
  std::set<std::string> sources;
  for (const json& part : parts) {
    const std::string off = text_in(part, "off");
    const std::string known_by = off.empty() ? text_in(part, "known_by") : off;
    const std::string of = text_in(part, "of");
    const std::string share = figure_in(part, "cpu_ratio", kPercent);
    const bool at_most = part.value("at_most", false) && !share.empty() && share.front() != '<';
    table.push_back({text_in(part, "name") + (of.empty() || !off.empty() ? "" : " (of " + of + ")"),
                     text_in(part, "tells"), text_in(part, "change"), figure_in(part, "runs_per_second"),
                     figure_in(part, "ns_per_run"), (at_most ? "<=" : "") + share, known_by});
    sources.insert(known_by);
  }
  util::print_table(table, out);
  out << fmt::format("\nin the last {}, of the time of {}:\n", util::duration_text(seconds),
                     util::count_text(answer.value("cpus", std::uint64_t{0}), "CPU"));
  print_total("programs in the kernel", answer.value("programs", json()), out);
  out << "the daemon: " << figure_in(answer, "daemon_cpu_ratio", kPercent) << " %\n";
  print_total("total", answer.value("total", json()), out);
  for (const std::string_view words : kKnownBy) {
    if (sources.contains(std::string(words.substr(0, words.find(':'))))) {
      out << words << '\n';
    }
  }
}

namespace {

struct DoctorOptions : FindingsOptions {
  bool cost = false;
};

/// `success`: it is known; `no_data`: not yet; `failure`: no daemon tells.
ExitCode show_cost(const ClientOptions& options) {
  const config::Config config = config_of(options);
  auto api = Api::open(options.where, config.web);
  const auto answer = api ? api->get("cost") : tl::make_unexpected(api.error());
  if (!answer) {
    const util::Error& error = answer.error();
    const auto one = advice::unanswered(
        error.error_number == kNobodyAnswers ? std::nullopt : std::optional(error.error_number), error.message);
    std::cerr << "what the observation costs is known only to a running daemon: " << one.why << '\n'
              << (one.change.empty() ? "" : "  " + one.change + "\n");
    return ExitCode::failure;
  }
  if (!answer->is_object() || !answer->contains("parts")) {
    return fail(
        {"the daemon at " + api->address() + " answered something other than costs; is it a different version?"});
  }
  if (options.json) {
    print_json(*answer, std::cout);
  } else {
    print_cost(*answer, std::cout);
  }
  return answer->value("seconds", 0.0) > 0 ? ExitCode::success : ExitCode::no_data;
}

/// Asks the running daemon; if none answers, examines the host as a daemon that is started now would. `success`: all
/// that can be measured here is; `failure`: something is not.
ExitCode doctor(const FindingsOptions& options) {
  const config::Config config = config_of(options.client);
  auto api = Api::open(options.client.where, config.web);
  const auto answer = api ? api->get("doctor") : tl::make_unexpected(api.error());
  auto all = answer ? page::findings_from(*answer) : of_host(config, options.root, answer.error());
  if (!all) {
    std::cerr << "the daemon at " << api->address()
              << " answered something other than findings; is it a different version?\n";
    return ExitCode::failure;
  }
  print_findings(*all, options, std::cout);
  return advice::has_gaps(*all) ? ExitCode::failure : ExitCode::success;
}

}  // namespace

void add_doctor(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("doctor", "What is not measured here, why, and what would change it");
  const auto options = std::make_shared<DoctorOptions>();
  add_client_options(*command, options->client);
  command->add_flag("--all", options->style.all, "Also show what is fine");
  command->add_flag("--verbose,-v", options->style.verbose, "Show everything that is known about each finding");
  command->add_flag("--cost", options->cost,
                    "What each part of the observation costs this host, and what changes that");
  command->add_option("--root", options->root, "Directory with the sys, proc and dev of another host")->group("");
  command->footer(
      "Exit status: 0 all that can be measured here is; 1 something is not; 2 wrong command line.\n"
      "With --cost: 0 it is known; 1 no daemon answers; 6 the daemon does not know it yet.");
  command->callback(
      [options, &exit_code] { exit_code = options->cost ? show_cost(options->client) : doctor(*options); });
}

}  // namespace ssdpulse::cli
