// SPDX-License-Identifier: Apache-2.0
// Asks the running daemon; if none answers, examines the host as a daemon that is started now would.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <optional>
#include <utility>

#include "daemon/client/commands.h"
#include "daemon/config/listen_address.h"
#include "daemon/doctor/doctor.h"
#include "daemon/sources/inventory/inventory.h"
#include "daemon/sources/probe/probe.h"
#include "daemon/util/in_time.h"
#include "exporters/findings/findings_json.h"

namespace ssdpulse::client {
namespace {

std::vector<std::uint16_t> ports_of(const config::Web& web) {
  std::vector<std::uint16_t> ports;
  for (const std::string& address : web.listen_address) {
    if (const auto parsed = config::parse_listen_address(address); parsed && parsed->port != 0) {
      ports.push_back(parsed->port);
    }
  }
  return ports;
}

std::vector<model::Device> measured_devices(const config::Devices& chosen, const std::string& root) {
  const auto inventory =
      inventory::read_inventory({root + "/sys", root + "/proc", root + "/dev"}, {chosen.include, chosen.exclude});
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

doctor::Findings of_host(const config::Config& config, const std::string& root, const util::Error& error) {
  const bool somebody = error.error_number != kNobodyAnswers;
  doctor::Findings all{doctor::unanswered(somebody ? std::optional(error.error_number) : std::nullopt, error.message)};
  model::HostProbe host = probe::probe_host(
      {root}, {if_it_answers(root, config.history.directory), if_it_answers(root, config.nvme.reader_socket)});
  if (!config.history.directory.empty() && !host.history_directory) {
    model::PathProbe silent;
    silent.path = config.history.directory;
    silent.answers = false;
    host.history_directory = std::move(silent);
  }
  const doctor::Start start{std::move(host), somebody ? std::vector<std::uint16_t>{} : ports_of(config.web),
                            measured_devices(config.devices, root)};
  for (model::Finding& one : doctor::examine(start)) {
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

util::ExitCode doctor(const Where& where, const config::Config& config, const FindingsOptions& options) {
  auto api = Api::open(where, config.web);
  const auto answer = api ? api->get("doctor") : tl::make_unexpected(api.error());
  auto all = answer ? page::findings_from(*answer) : of_host(config, options.root, answer.error());
  if (!all) {
    std::cerr << "the daemon at " << api->address()
              << " answered something other than findings; is it a different version?\n";
    return util::ExitCode::failure;
  }
  print(*all, options, std::cout);
  return doctor::has_gaps(*all) ? util::ExitCode::failure : util::ExitCode::success;
}

}  // namespace ssdpulse::client
