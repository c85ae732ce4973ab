// SPDX-License-Identifier: Apache-2.0
// What should be changed on this host, by what was measured on it?
#pragma once

#include <span>
#include <string>
#include <vector>

#include "daemon/audit/rule.h"

namespace ssdpulse::audit {

std::span<const Rule> rules();

/// What every rule says of everything that it judges, sorted: danger, then by seconds of waiting a day, then by wear;
/// then what is unknown, info, ok and not applicable.
std::vector<Finding> judge(const Facts& facts);

/// A finding that somebody has decided to live with.
struct Acceptance {
  std::string id;      // shell pattern, as the next
  std::string device;  // of device or mount point; the host is ""
  std::string reason;
  std::string expires;  // YYYY-MM-DD; from that day on it counts again
};

struct Accepted {
  std::vector<Finding> standing;   // those that nobody has accepted
  std::vector<Finding> accepted;   // with the reason in `why`
  std::vector<std::string> words;  // of acceptances that have expired, or that nothing fits
};

/// `today`: YYYY-MM-DD. Danger is never accepted by a pattern for all: its id must be named in full.
Accepted accept(std::vector<Finding> findings, const std::vector<Acceptance>& acceptances, const std::string& today);

/// YYYY-MM-DD, where this host is.
std::string today();

/// Whether something is advised, or in danger.
bool something_to_do(const std::vector<Finding>& findings);

}  // namespace ssdpulse::audit
