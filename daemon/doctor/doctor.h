// SPDX-License-Identifier: Apache-2.0
// What is not measured here, why, and what would change it? Pure functions of what the running daemon knows, or of what
// the host offers while none runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/finding.h"
#include "daemon/model/host_probe.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::doctor {

using Findings = std::vector<model::Finding>;

/// Of a running daemon, in the order of the list of checks. Every check is there: `ok` where all is measured.
/// `info`: it is not measured, and nothing on this host would change that, or somebody wanted it so.
Findings examine(const model::Snapshot& snapshot);

/// What a daemon would meet that was started with this configuration by whoever asks.
struct Start {
  model::HostProbe host;
  std::vector<std::uint16_t> ports;    // that it would listen on
  std::vector<model::Device> devices;  // that it would measure
};
Findings examine(const Start& start);

/// Instead of what a daemon knows. `status`: of HTTP, of an answer without findings; 0: whatever else came instead of
/// one; nothing: nobody answered. `why`: the same in words, and what to do.
model::Finding unanswered(std::optional<int> status, const std::string& why);

/// Whether something is not measured that could be.
bool something_is_missing(const Findings& findings);

}  // namespace ssdpulse::doctor
