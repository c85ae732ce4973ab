// SPDX-License-Identifier: Apache-2.0
// The `key=value` pairs of a log line, for readers that need them separately: the journal, and JSON.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace ssdpulse::log {

/// The first value of each `key=value` or `key="some value"` in the message, in order: at most 24, with keys of at most
/// 40 bytes of lower-case letters, digits and `_` (the journal accepts names of 64). Views into the message.
std::vector<std::pair<std::string_view, std::string_view>> fields_of(std::string_view message);

}  // namespace ssdpulse::log
