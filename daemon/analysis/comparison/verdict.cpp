// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/comparison/verdict.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "daemon/analysis/comparison/student.h"

namespace ssdpulse::analysis::comparison {

Change change_between(const Estimate& before, const Estimate& after, double resolution) {
  const double variance = before.variance + after.variance;
  const double degrees = variance * variance /
                         (before.variance * before.variance / before.degrees +
                          after.variance * after.variance / after.degrees);  // Welch and Satterthwaite
  return change_by(after.log_value - before.log_value, variance, degrees, resolution);
}

Change change_by(double distance, double variance, double degrees, double resolution) {
  if (variance <= 0) {
    return change_within(std::exp(distance), std::exp(distance), std::exp(distance));
  }
  const double error = std::sqrt(variance);
  const double width = error * student_quantile((1 - kConfidence) / 2, degrees);
  const double beyond = std::max(0.0, std::fabs(distance) - std::log1p(resolution));
  return {std::exp(distance),
          std::exp(distance - width),
          std::exp(distance + width),
          2 * student_tail(beyond / error, degrees),
          resolution,
          error,
          degrees};
}

Change change_within(double ratio, double lower, double upper) {
  return {ratio, lower, upper, lower <= 1 && upper >= 1 ? 1.0 : 0.0};
}

std::vector<double> holm(const std::vector<std::optional<Change>>& changes) {
  std::vector<std::size_t> order;
  for (std::size_t row = 0; row < changes.size(); ++row) {
    if (changes[row]) {
      order.push_back(row);
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return changes[a]->p_value < changes[b]->p_value; });
  std::vector<double> levels(changes.size());
  double level = 0;
  bool stopped = false;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    if (!stopped) {
      level = (1 - kConfidence) / static_cast<double>(order.size() - rank);
      stopped = changes[order[rank]]->p_value > level;
    }
    levels[order[rank]] = level;
  }
  return levels;
}

Interval corrected(const Change& change, double level) {
  if (change.error <= 0) {
    return {change.lower, change.upper};
  }
  const double width = change.error * student_quantile(level / 2, change.degrees) + std::log1p(change.resolution);
  return {std::min(change.lower, change.ratio * std::exp(-width)),
          std::max(change.upper, change.ratio * std::exp(width))};
}

Verdict verdict_of(const Change& change, double level, double margin) {
  if (change.lower >= 1 / (1 + margin) && change.upper <= 1 + margin) {
    return Verdict::same;
  }
  if (change.p_value > level) {
    return Verdict::cannot_tell;
  }
  return change.ratio < 1 ? Verdict::better : Verdict::worse;
}

double times_longer(const Change& change, double resolution, double margin) {
  const double width = std::log(change.upper / change.lower) / 2;
  const double distance = std::fabs(std::log(change.ratio));
  const double to_differ = distance - std::log1p(resolution);
  const double to_be_same = std::log1p(margin) - distance;
  const double room = std::max({to_differ, to_be_same, 1e-3});
  return width * width / (room * room);
}

}  // namespace ssdpulse::analysis::comparison
