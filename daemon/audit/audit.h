// SPDX-License-Identifier: Apache-2.0
// The audit: applies all rules to find what should be changed on this host, judging by what was measured on it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "daemon/audit/rule.h"
#include "daemon/model/acceptance.h"

namespace ssdpulse::audit {

std::span<const Rule> rules();

/// What every rule finds about everything that it judges, sorted by verdict (danger, advise, unknown, info, ok, not
/// applicable), then by seconds of waiting a day, then by wear; the largest first.
std::vector<Finding> judge(const Facts& facts);

using model::Acceptance;

struct Accepted {
  std::vector<Finding> standing;   // those that nobody has accepted
  std::vector<Finding> accepted;   // with the reason in `why`
  std::vector<std::string> words;  // about acceptances that have expired or match nothing
};

/// `today`: YYYY-MM-DD. Danger is accepted only if its id is named in full, never by a pattern.
Accepted accept(std::vector<Finding> findings, const std::vector<Acceptance>& acceptances, const std::string& today);

/// YYYY-MM-DD, in this host's time zone.
std::string today();

/// Whether any finding is advice or danger.
bool has_actionable(const std::vector<Finding>& findings);

}  // namespace ssdpulse::audit
