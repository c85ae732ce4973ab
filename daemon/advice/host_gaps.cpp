// SPDX-License-Identifier: Apache-2.0
#include "daemon/advice/host_gaps.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "daemon/base/child_process.h"
#include "daemon/base/glob.h"
#include "daemon/host/inventory.h"

namespace ssdpulse::advice {
namespace {

void add_idle_patterns(const std::string& key, const std::vector<std::string>& patterns,
                       const std::vector<std::string>& defaults, const model::Inventory& inventory,
                       std::vector<std::string>& gaps) {
  for (const std::string& pattern : patterns) {
    const bool by_default = std::find(defaults.begin(), defaults.end(), pattern) != defaults.end();
    const bool matches =
        std::any_of(inventory.devices.begin(), inventory.devices.end(),
                    [&](const model::Device& device) { return util::glob_matches(pattern, device.name); });
    if (!by_default && !matches) {
      gaps.push_back(key + ": \"" + pattern + "\" matches no block device of this host");
    }
  }
}

}  // namespace

std::vector<std::string> host_gaps(const config::Config& config, const model::Inventory& inventory) {
  std::vector<std::string> gaps;
  const config::Devices defaults = config::Config().devices;
  add_idle_patterns("devices.include", config.devices.include, defaults.include, inventory, gaps);
  add_idle_patterns("devices.exclude", config.devices.exclude, defaults.exclude, inventory, gaps);
  for (const auto& [device, reason] : host::named_and_not_measured(config.devices.include, inventory)) {
    if (std::any_of(inventory.devices.begin(), inventory.devices.end(),
                    [&device = device](const model::Device& one) { return one.name == device; })) {
      gaps.push_back("devices.include: \"" + device + "\" is not measured: " + reason);
    }
  }
  if (std::none_of(inventory.devices.begin(), inventory.devices.end(),
                   [](const model::Device& device) { return device.coverage == model::Coverage::measured; })) {
    gaps.emplace_back("devices: no block device of this host would be measured");
  }
  if (!config.history.directory.empty()) {
    const auto parent = std::filesystem::path(config.history.directory + "/").parent_path().parent_path();
    if (const auto answers = util::file_answers(parent.string()); !answers) {
      gaps.push_back("history.directory: " + answers.error().message);
      return gaps;
    }
    std::error_code error;
    const auto type = std::filesystem::status(parent, error).type();
    if (type == std::filesystem::file_type::not_found) {
      gaps.push_back("history.directory: its parent " + parent.string() +
                     " does not exist; the daemon would not start");
    } else if (type != std::filesystem::file_type::directory && !error) {
      gaps.push_back("history.directory: its parent " + parent.string() +
                     " is not a directory; the daemon would not start");
    }
  }
  return gaps;
}

}  // namespace ssdpulse::advice
