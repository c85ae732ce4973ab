// SPDX-License-Identifier: Apache-2.0
// Findings as JSON, as text for a terminal, and as Markdown for a ticket.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "daemon/model/finding.h"

namespace ssdpulse::findings {

using Findings = std::vector<model::Finding>;

/// {"findings": [{"id", "verdict", "device", "title", "found", "why", "evidence", "change", "persistent", "undo",
/// "risk", "source", "proof", "since", "excess_seconds_per_day", "wear_bytes_per_day", "observed_seconds",
/// "observed_by"}]}. Missing texts are empty, unknown numbers and times are null. Times are seconds since the epoch.
nlohmann::ordered_json to_json(const Findings& findings);

/// Reads such JSON back. What does not fit is left out; nothing if the answer has no list.
std::optional<Findings> from_json(const nlohmann::json& answer);

struct Style {
  bool all = false;      // also what is fine, or does not apply
  bool verbose = false;  // all that is known about each; Markdown always has it
};

/// What the finding costs, over which time, and the evidence for it; empty if nothing was measured. "At most 5 min of
/// waiting a day, all I/Os together, measured over 7 d, by the history: queue time 30 %"
std::string evidence_sentence(const model::Finding& one);

/// One line each, equal ones of several devices in one (if verbose, a block for each), and a last line with counts.
/// Text from outside loses every byte that a terminal would interpret.
void print_text(const Findings& findings, const Style& style, std::ostream& out);
void print_markdown(const Findings& findings, const Style& style, std::ostream& out);

}  // namespace ssdpulse::findings
