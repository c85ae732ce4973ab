// SPDX-License-Identifier: Apache-2.0
#include "daemon/simulation/results_text.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "daemon/model/operation.h"
#include "exporters/terminal/table.h"

namespace ssdpulse::simulation {
namespace {

/// Percent as requested: 7, 12.5.
std::string percent(double share) { return fmt::format("{:.6g}", std::round(share * 1e8) / 1e6); }

std::string number(const std::optional<model::Estimate>& estimate, double model::Estimate::*which,
                   const char* otherwise) {
  return estimate ? fmt::format("{:.4f}", (*estimate).*which) : otherwise;
}

std::string policy_of(const model::WhatIf& what) {
  return std::string(name(what.policy, model::kCollectionPolicyNames));
}
std::string placement_of(const model::WhatIf& what) {
  return std::string(name(what.placement, model::kPlacementNames));
}
std::string discards_of(const model::WhatIf& what) { return std::string(name(what.discards, model::kDiscardsNames)); }

}  // namespace

void print_json(const std::vector<SimulationResult>& results, std::ostream& out) {
  out << "{\"results\":[";
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& [what, estimate] = results[i];
    out << (i == 0 ? "\n" : ",\n")
        << fmt::format(R"({{"op":{},"policy":"{}","placement":"{}","discards":"{}",)", percent(what.overprovisioning),
                       policy_of(what), placement_of(what), discards_of(what))
        << fmt::format(
               R"("write_amplification":{},"lower":{},"upper":{}}})", number(estimate, &model::Estimate::ratio, "null"),
               number(estimate, &model::Estimate::lower, "null"), number(estimate, &model::Estimate::upper, "null"));
  }
  out << "\n]}\n";
}

void print_rows(const std::vector<SimulationResult>& results, std::ostream& out) {
  std::vector<std::vector<std::string>> rows{{"OP %", "POLICY", "PLACEMENT", "DISCARDS", "WAF", "LOWER", "UPPER"}};
  for (const auto& [what, estimate] : results) {
    rows.push_back({percent(what.overprovisioning), policy_of(what), placement_of(what), discards_of(what),
                    number(estimate, &model::Estimate::ratio, ""), number(estimate, &model::Estimate::lower, ""),
                    number(estimate, &model::Estimate::upper, "")});
  }
  terminal::print_table(rows, out);
}

}  // namespace ssdpulse::simulation
