// SPDX-License-Identifier: Apache-2.0
// The file of findings that somebody has decided to live with, as model::Acceptance:
//
//   accepted:
//     - {id: F2, device: /srv/*, reason: the array is replaced in March, expires: 2027-03-31}
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/config/yaml_document.h"
#include "daemon/model/finding.h"

namespace ssdpulse::config {

inline constexpr const char* kAcceptedFile = "/etc/ssdpulse/accepted.yaml";

using AcceptedOutcome = tl::expected<std::vector<model::Acceptance>, std::vector<Problem>>;

/// All of it, or every problem. Any bytes are safe, in bounded time and memory.
AcceptedOutcome parse_accepted(std::string_view text, std::string_view file_name);

/// Reads a regular file of at most 1 MiB (never blocks on a pipe or a terminal) and parses it.
AcceptedOutcome load_accepted(const std::string& path);

/// The same; nothing is accepted if there is no such file.
AcceptedOutcome load_accepted_if_present(const std::string& path);

}  // namespace ssdpulse::config
