// SPDX-License-Identifier: Apache-2.0
// Findings as JSON, there and back: what the daemon answers, and what `doctor` and `audit` print for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "daemon/model/finding.h"

namespace ssdpulse::page {

/// {"findings": [{"id", "verdict", "device", "title", "found", "why", "evidence", "change", "persistent", "undo",
/// "risk", "source", "proof", "since", "excess_seconds_per_day", "wear_bytes_per_day", "observed_seconds",
/// "observed_by"}]}. Missing texts are empty, unknown numbers and times are null. Times are seconds since the epoch.
nlohmann::ordered_json findings_json(const std::vector<model::Finding>& findings);

/// Reads such JSON back. What does not fit is left out; nothing if the answer has no list.
std::optional<std::vector<model::Finding>> findings_from(const nlohmann::json& answer);

}  // namespace ssdpulse::page
