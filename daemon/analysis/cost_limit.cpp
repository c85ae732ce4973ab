// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/cost_limit.h"

#include <algorithm>

namespace ssdpulse::analysis {

std::optional<CostLimit::Step> CostLimit::observe(const OwnCost::Ratios& ratios, std::chrono::nanoseconds elapsed,
                                                  const Rule& rule) {
  const auto ratio_of = [&](std::size_t at) { return ratios[static_cast<std::size_t>(efforts_[at])]; };
  if (effort() == model::Effort::nothing) {
    return std::nullopt;
  }
  if (const auto now = ratio_of(at_); now && rule.ratio > 0) {
    if (auto step = step_down(*now, elapsed, rule)) {
      return step;
    }
  } else {
    window_.clear();
    windowed_ = {};
    weighed_ = 0;
  }
  if (at_ == 0) {
    return std::nullopt;
  }
  const auto higher = ratio_of(at_ - 1);
  // Without a limit, effort goes up again without waiting.
  if (rule.ratio <= 0) {
    return go_to(at_ - 1, higher.value_or(0));
  }
  return higher ? step_up(*higher, elapsed, rule) : std::nullopt;
}

std::optional<CostLimit::Step> CostLimit::step_down(double ratio, std::chrono::nanoseconds elapsed, const Rule& rule) {
  window_.emplace_back(elapsed, ratio * static_cast<double>(elapsed.count()));
  windowed_ += elapsed;
  weighed_ += window_.back().second;
  while (windowed_ - window_.front().first >= rule.after) {
    windowed_ -= window_.front().first;
    weighed_ -= window_.front().second;
    window_.pop_front();
  }
  const double mean = weighed_ / static_cast<double>(windowed_.count());
  const bool full = windowed_ >= rule.after;
  return full && mean > rule.ratio && at_ + 1 < efforts_.size() ? std::optional(go_to(at_ + 1, mean)) : std::nullopt;
}

std::optional<CostLimit::Step> CostLimit::step_up(double ratio, std::chrono::nanoseconds elapsed, const Rule& rule) {
  if (ratio >= kWellBelow * rule.ratio) {
    well_below_ = {};
    highest_ = 0;
    return std::nullopt;
  }
  well_below_ += elapsed;
  highest_ = std::max(highest_, ratio);
  return well_below_ >= kLongerUp * rule.after ? std::optional(go_to(at_ - 1, highest_)) : std::nullopt;
}

CostLimit::Step CostLimit::go_to(std::size_t at, double ratio) {
  const Step step{efforts_[at_], efforts_[at], ratio};
  at_ = at;
  window_.clear();
  windowed_ = {};
  weighed_ = 0;
  well_below_ = {};
  highest_ = 0;
  return step;
}

}  // namespace ssdpulse::analysis
