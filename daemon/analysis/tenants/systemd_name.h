// SPDX-License-Identifier: Apache-2.0
// Functions that extract other names from systemd's unit names. Pure.
#pragma once

#include <string>
#include <string_view>

namespace ssdpulse::analysis {

/// \xNN becomes the byte; anything else stays.
std::string without_escapes(std::string_view name);

/// Removes the suffix, if the name has it and is longer; returns whether it did.
bool strip_suffix(std::string_view& name, std::string_view suffix);
bool strip_prefix(std::string_view& name, std::string_view prefix);

}  // namespace ssdpulse::analysis
