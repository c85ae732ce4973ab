// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings cpu_limit(const model::Snapshot& snapshot) {
  const model::OwnCostFigures& cost = snapshot.own_cost;
  if (cost.effort == model::Effort::everything) {
    return {};
  }
  auto one = finding(model::Verdict::advise, "", fmt::format("not measured: {}", model::what_is_off(cost.effort)),
                     fmt::format("measuring everything takes more than {:.3g} % of the host's CPUs", cost.limit * 100),
                     "see the runbook SsdpulseLimitingItself");
  one.evidence = {{"cpu_limit_ratio", cost.limit}};
  if (cost.ratio) {
    one.evidence["estimated_bpf_cpu_ratio"] = *cost.ratio;
  }
  return {one};
}

}  // namespace

const RunningCheck kCpuLimit{"cpu-limit", "nothing is turned off to spare the host", cpu_limit};

}  // namespace ssdpulse::doctor
