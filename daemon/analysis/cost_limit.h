// SPDX-License-Identifier: Apache-2.0
// CostLimit: decides how much the programs in the kernel may do without taking more than their share of CPU time.
//
// If the mean over `after` is above the limit, effort goes down one step. If the next higher effort would have stayed
// well below the limit at every check for five times as long, it goes up one step. `nothing` is final. Pure: no clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/analysis/own_cost.h"
#include "daemon/model/own_cost.h"

namespace ssdpulse::analysis {

class CostLimit {
 public:
  struct Rule {
    double ratio = 0;  // of all CPUs' time; 0: no limit
    std::chrono::nanoseconds after{std::chrono::minutes(1)};
  };
  struct Step {
    model::Effort from;
    model::Effort to;
    double ratio;  // why: the mean at `from`, or the most that `to` would have taken
  };

  /// `efforts`: those that this daemon can make, the highest first; at least one.
  explicit CostLimit(std::vector<model::Effort> efforts) : efforts_(std::move(efforts)) {}

  /// Call once per check. An absent ratio decides nothing.
  std::optional<Step> observe(const OwnCost::Ratios& ratios, std::chrono::nanoseconds elapsed, const Rule& rule);

  [[nodiscard]] model::Effort effort() const { return efforts_[at_]; }

  /// A step up requires that the higher effort stay below this share of the limit.
  static constexpr double kWellBelow = 0.7;
  static constexpr int kLongerUp = 5;

 private:
  std::optional<Step> step_down(double ratio, std::chrono::nanoseconds elapsed, const Rule& rule);
  std::optional<Step> step_up(double ratio, std::chrono::nanoseconds elapsed, const Rule& rule);
  Step go_to(std::size_t at, double ratio);

  std::vector<model::Effort> efforts_;
  std::size_t at_ = 0;
  std::deque<std::pair<std::chrono::nanoseconds, double>> window_;  // each check's time, and ratio x time
  std::chrono::nanoseconds windowed_{};
  double weighed_ = 0;  // sum of ratio x time, in ns
  std::chrono::nanoseconds well_below_{};
  double highest_ = 0;  // of the higher effort, in that time
};

}  // namespace ssdpulse::analysis
