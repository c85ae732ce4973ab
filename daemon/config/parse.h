// SPDX-License-Identifier: Apache-2.0
// Reads and prints the configuration. All of it is checked before any of it is used.
// An empty document or section means the defaults. A key without a value is an error: it could mean the default as well
// as "none".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/config/problem.h"
#include "daemon/util/result.h"

namespace ssdpulse::config {

/// A whole Config, or every problem in the order of the text (invalid YAML is one problem: what comes after it has no
/// meaning yet). Never a partial Config.
using ParseOutcome = tl::expected<Config, std::vector<Problem>>;

/// `file_name` only appears in the problems. Any bytes are safe, in bounded time and memory.
ParseOutcome parse(std::string_view text, std::string_view file_name);

/// Reads a regular file of at most 1 MiB (never blocks on a pipe or a terminal) and parses it.
ParseOutcome load(const std::string& path);

/// Every key with its value, as YAML that parses back to an equal Config.
std::string print(const Config& config);

/// Full names such as "web.listen_address", in the order of print.
std::vector<std::string> known_keys();

/// Full names of the keys that differ and that a reload cannot apply.
std::vector<std::string> keys_requiring_restart(const Config& running, const Config& wanted);

}  // namespace ssdpulse::config
