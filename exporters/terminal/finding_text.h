// SPDX-License-Identifier: Apache-2.0
// Findings as text for a terminal, and as Markdown for a ticket.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "daemon/model/finding.h"

namespace ssdpulse::terminal {

using Findings = std::vector<model::Finding>;

struct FindingStyle {
  bool all = false;      // also what is fine, or does not apply
  bool verbose = false;  // all that is known about each; Markdown always has it
};

/// What the finding costs, over which time, and the evidence for it; empty if nothing was measured. "At most 5 min of
/// waiting a day, all I/Os together, measured over 7 d, by the history: queue time 30 %"
std::string evidence_sentence(const model::Finding& one);

/// One line each, equal ones of several devices in one (if verbose, a block for each), and a last line with counts.
/// Text from outside loses every byte that a terminal would interpret.
void print_findings(const Findings& findings, const FindingStyle& style, std::ostream& out);
void print_findings_markdown(const Findings& findings, const FindingStyle& style, std::ostream& out);

}  // namespace ssdpulse::terminal
