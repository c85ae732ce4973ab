// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings latency_mode(const model::Snapshot& snapshot) {
  if (snapshot.latency_mode != "completion-only" || snapshot.own_cost.effort >= model::Effort::completions) {
    return {};  // what limits.cpu turned off is a finding of its own
  }
  auto one = finding(model::Verdict::info, "", "no device time, queue time, I/Os in flight and requeues",
                     "latency.mode is completion-only", "set latency.mode to full and restart the daemon");
  one.risk = "a second program runs for each I/O; see overhead.md";
  return {one};
}

}  // namespace

const RunningCheck kLatencyMode{"latency-mode", "queue and device time are separate", latency_mode};

}  // namespace ssdpulse::doctor
