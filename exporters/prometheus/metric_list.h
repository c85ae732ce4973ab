// SPDX-License-Identifier: Apache-2.0
// The list of every metric that ssdpulse exports, for people and programs: what `ssdpulse metrics` prints.
// Comes from the tables that pages are made from, so it cannot disagree with them.
#pragma once

#include <string>

namespace ssdpulse::exposition {

/// For a terminal.
std::string metric_list_text();

/// {"metrics": [{"name", "topic", "group", "type", "unit", "labels": [{"name", "values", "meaning"}], "help",
/// "absent_when"}]} `values` is null if they are not enumerated, `absent_when` is null if the family is always there.
std::string metric_list_json();

/// The manual page ssdpulse-metrics(7), in mdoc.
std::string metric_list_manual();

}  // namespace ssdpulse::exposition
