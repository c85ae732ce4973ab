// SPDX-License-Identifier: Apache-2.0
// How does systemd write names of others into names of units?
#pragma once

#include <string>
#include <string_view>

namespace ssdpulse::analysis {

/// \xNN becomes the byte; what is no escape stays.
std::string without_escapes(std::string_view name);

/// The name without the suffix, if it has it and is longer.
bool strip_suffix(std::string_view& name, std::string_view suffix);
bool strip_prefix(std::string_view& name, std::string_view prefix);

}  // namespace ssdpulse::analysis
