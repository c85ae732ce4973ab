// SPDX-License-Identifier: Apache-2.0
// judge(): applies all rules to find what should be changed on this host, by what was measured on it. Pure, except for
// today().
#pragma once

#include <string>
#include <vector>

#include "daemon/advice/rule.h"
#include "daemon/model/finding.h"

namespace ssdpulse::advice {

/// In the order of deploy/docs/audit.md: Q, N, F, each by number.
const std::vector<Rule>& rules();

/// What every rule finds about everything that it judges, sorted by verdict (danger, advise, unknown, info, ok, not
/// applicable), then by seconds of waiting a day, then by wear; the largest first.
std::vector<Finding> judge(const Facts& facts);

/// Danger or advice.
bool is_actionable(const Finding& finding);
bool has_actionable(const std::vector<Finding>& findings);

using model::Acceptance;

struct Accepted {
  std::vector<Finding> standing;      // those that nobody has accepted
  std::vector<Finding> accepted;      // with the reason in `why`
  std::vector<std::string> problems;  // acceptances that have expired or match nothing
};

/// `today`: YYYY-MM-DD. Danger is accepted only if its id is named in full, never by a pattern.
Accepted accept(std::vector<Finding> findings, const std::vector<Acceptance>& acceptances, const std::string& today);

/// YYYY-MM-DD, in this host's time zone.
std::string today();

}  // namespace ssdpulse::advice
