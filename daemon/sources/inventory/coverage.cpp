// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/inventory/coverage.h"

#include <algorithm>

namespace ssdpulse::inventory {

std::vector<std::pair<std::string, std::string>> named_and_not_measured(const std::vector<std::string>& include,
                                                                        const model::Inventory& inventory) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& name : include) {
    if (name.find_first_of("*?[\\") != std::string::npos) {
      continue;
    }
    const auto device = std::find_if(inventory.devices.begin(), inventory.devices.end(),
                                     [&](const model::Device& one) { return one.name == name; });
    if (device == inventory.devices.end()) {
      found.emplace_back(name, "there is no such disk");
    } else if (device->coverage != model::Coverage::measured) {
      found.emplace_back(name, model::kCoverageWords[static_cast<std::size_t>(device->coverage)]);
    }
  }
  return found;
}

}  // namespace ssdpulse::inventory
