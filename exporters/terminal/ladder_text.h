// SPDX-License-Identifier: Apache-2.0
// print_ladders(): where writes are amplified between two answers of the API, as a table for each group of drives that
// share volumes: `ssdpulse devices --ladder`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>

namespace ssdpulse::terminal {

/// `before`, `now`: of /api/v1/stacks; `devices`: of /api/v1/devices, for what drives add, which their counters show
/// over hours and not within seconds. Answers may be anybody's: what they lack is left out, and no name is trusted.
void print_ladders(const nlohmann::json& before, const nlohmann::json& now, const nlohmann::json& devices,
                   std::ostream& out);

}  // namespace ssdpulse::terminal
