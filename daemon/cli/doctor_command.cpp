// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <utility>

#include "daemon/advice/doctor.h"
#include "daemon/base/child_process.h"
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
  const auto options = std::make_shared<FindingsOptions>();
  add_client_options(*command, options->client);
  command->add_flag("--all", options->style.all, "Also show what is fine");
  command->add_flag("--verbose,-v", options->style.verbose, "Show everything that is known about each finding");
  command->add_option("--root", options->root, "Directory with the sys, proc and dev of another host")->group("");
  command->footer("Exit status: 0 all that can be measured here is; 1 something is not; 2 wrong command line.");
  command->callback([options, &exit_code] { exit_code = doctor(*options); });
}

}  // namespace ssdpulse::cli
