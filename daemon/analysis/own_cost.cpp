// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/own_cost.h"

#include <algorithm>

namespace ssdpulse::analysis {
namespace {

/// How much of a full run's time a run takes at each effort, as measured by tests/bench/overhead.sh.
struct Share {
  double issue;
  double completion;
};
constexpr auto kShares = std::to_array<Share>({{1, 1}, {0.85, 0.9}, {0.2, 0.5}, {0, 0}});
static_assert(kShares.size() == model::kEfforts);

/// Fewer runs in one second say little about the next second.
constexpr std::uint64_t kRunsToLearn = 1000;
/// Weight of a new sample of how far the measurement is off.
constexpr double kWeight = 0.2;

double ns_of(const Work& work, const model::RunCost& cost, std::size_t effort) {
  return static_cast<double>(work.issues) * cost.issue_ns * kShares[effort].issue +
         static_cast<double>(work.completions) * cost.completion_ns * kShares[effort].completion;
}

}  // namespace

OwnCost::OwnCost(const std::optional<model::RunCost>& cost, unsigned cpus) : cost_(cost), cpus_(std::max(cpus, 1U)) {}

OwnCost::Ratios OwnCost::observe(const Work& work, std::chrono::nanoseconds elapsed, model::Effort effort) {
  const double all_ns = static_cast<double>(elapsed.count()) * cpus_;
  const auto now = static_cast<std::size_t>(effort);
  Ratios ratios;
  if (cost_) {
    const double expected = ns_of(work, *cost_, now);
    if (work.accounted_runs >= kRunsToLearn && expected > 0) {
      correction_ += kWeight * (static_cast<double>(work.accounted_ns) / expected - correction_);
    }
    for (std::size_t other = 0; other < ratios.size(); ++other) {
      ratios[other] = ns_of(work, *cost_, other) * correction_ / all_ns;
    }
  }
  if (work.accounted_runs > 0) {
    ratios[now] = static_cast<double>(work.accounted_ns) / all_ns;
  }
  return ratios;
}

}  // namespace ssdpulse::analysis
