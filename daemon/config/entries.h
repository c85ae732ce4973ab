// SPDX-License-Identifier: Apache-2.0
// Walks the entries of a mapping and reports unknown and duplicate keys. Shared by all our YAML files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/config/document.h"
#include "daemon/config/problem.h"
#include "daemon/util/result.h"

namespace ssdpulse::config {

/// "a, b, c"
std::string joined(const std::vector<std::string>& names);

using Visit = std::function<void(const std::string& name, const Value& value)>;

/// Calls `visit` for each entry with a known name, also for a second one of that name: its value may be wrong too. If
/// no names are given, any name counts as known.
void visit_entries(const Value& mapping, const std::vector<std::string>& known, Report& report, const Visit& visit);

/// At most kMaxBytes of a regular file (never blocks on a pipe or a terminal). The error does not name the path.
util::Result<std::string> read_regular_file(const std::string& path);

}  // namespace ssdpulse::config
