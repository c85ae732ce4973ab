// SPDX-License-Identifier: Apache-2.0
// The `key=value` pairs of a log line, for readers that want them apart: the journal, and JSON.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace ssdpulse::log {

/// The first value of each `key=value` or `key="some value"` in the message, in its order: at most 24, with keys of
/// small letters, digits and `_`, of at most 40 bytes (the journal takes names of 64). Views into the message.
std::vector<std::pair<std::string_view, std::string_view>> fields_of(std::string_view message);

}  // namespace ssdpulse::log
