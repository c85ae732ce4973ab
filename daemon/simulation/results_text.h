// SPDX-License-Identifier: Apache-2.0
// SimulationResult: one result of a simulation, written for programs as JSON and for people as a table.
#pragma once

#include <optional>
#include <ostream>
#include <vector>

#include "daemon/model/flash.h"

namespace ssdpulse::simulation {

struct SimulationResult {
  model::WhatIf what_if;
  std::optional<model::Estimate> estimate;  // absent: nothing was written in the window
};

void print_json(const std::vector<SimulationResult>& results, std::ostream& out);
void print_rows(const std::vector<SimulationResult>& results, std::ostream& out);

}  // namespace ssdpulse::simulation
