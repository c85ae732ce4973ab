// SPDX-License-Identifier: Apache-2.0
// Checks whether a shell glob can match the name of a block device.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ssdpulse::config {

/// Why it can match none, as the end of a sentence about it; nothing if it can.
std::optional<std::string> validate_device_pattern(std::string_view glob);

}  // namespace ssdpulse::config
