// SPDX-License-Identifier: Apache-2.0
// Which disks are measured, and why others are not, in human-readable words.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "daemon/model/device.h"

namespace ssdpulse::inventory {

/// The disks that the configuration includes by name (not by a pattern) and that are nevertheless not measured: each
/// with the reason in words, in the order of `include`.
std::vector<std::pair<std::string, std::string>> named_and_not_measured(const std::vector<std::string>& include,
                                                                        const model::Inventory& inventory);

}  // namespace ssdpulse::inventory
