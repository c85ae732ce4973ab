// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/comparison/usual_differences.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "daemon/analysis/comparison/verdict.h"

namespace ssdpulse::analysis::comparison {

namespace {

constexpr double kMinPairs = 8;   // that do not overlap
constexpr double kOverlap = 1.5;  // as in estimate.cpp
constexpr double kMinDegreesOfFreedom = 3;

using Values = std::vector<std::optional<double>>;

/// The figure of the stretch of so many minutes that begins at each; absent where a minute is missing.
Values of_each_stretch(const MinuteSums& day, const std::vector<model::PastTime>& starts, const Figure& figure,
                       double least, std::size_t minutes) {
  Values values(day.minutes());
  std::vector<double> sum(day.width);
  for (std::size_t begin = 0; begin + minutes <= values.size(); ++begin) {
    if (starts[begin + minutes - 1] - starts[begin] != std::chrono::minutes(minutes - 1)) {
      continue;
    }
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::size_t i = begin; i < begin + minutes; ++i) {
      const std::span<const double> minute = day.minute(i);
      std::transform(sum.begin(), sum.end(), minute.begin(), sum.begin(), std::plus<>());
    }
    if (figure.samples(sum) >= least) {
      values[begin] = figure.log_value(sum);
    }
  }
  return values;
}

/// By how much each second stretch differs from the first one.
std::vector<double> differences(const Values& first, const Values& second, const std::vector<model::PastTime>& starts,
                                std::size_t apart) {
  std::vector<double> result;
  std::size_t other = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const model::PastTime wanted = starts[i] + std::chrono::minutes(apart);
    while (other < starts.size() && starts[other] < wanted) {
      ++other;
    }
    if (other < starts.size() && starts[other] == wanted && first[i] && second[other]) {
      result.push_back(*second[other] - *first[i]);
    }
  }
  return result;
}

std::vector<double> from_their_mean(const Values& values) {
  std::vector<double> result;
  for (const auto& value : values) {
    if (value) {
      result.push_back(*value);
    }
  }
  const double mean = std::accumulate(result.begin(), result.end(), 0.0) / static_cast<double>(result.size());
  for (double& value : result) {
    value -= mean;
  }
  return result;
}

/// The square of what 19 of 20 stay within, as a variance: bursts that few stretches have make it larger than theirs.
double variance_by_rank(std::vector<double> off) {
  const auto rank = off.begin() + static_cast<std::ptrdiff_t>(kConfidence * static_cast<double>(off.size()));
  std::nth_element(off.begin(), rank, off.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  constexpr double kNormal = 1.96;
  return *rank * *rank / (kNormal * kNormal);
}

/// A few large values make a variance uncertain: the degrees of freedom follow from the spread of the squares.
std::optional<UsualDifferences> spread_of(const std::vector<double>& off, double minutes_each) {
  const double independent = static_cast<double>(off.size()) / minutes_each;
  if (independent < kMinPairs) {
    return std::nullopt;
  }
  double squares = 0;
  double fourths = 0;
  for (const double one : off) {
    squares += one * one;
    fourths += one * one * one * one;
  }
  const auto count = static_cast<double>(off.size());
  const double variance = squares / count;
  const double of_squares = fourths / count - variance * variance;
  const double degrees = of_squares > 0 ? kOverlap * independent * 2 * variance * variance / of_squares : HUGE_VAL;
  return UsualDifferences{std::max(variance, variance_by_rank(off)),
                          std::clamp(degrees, kMinDegreesOfFreedom, kOverlap * independent)};
}

}  // namespace

std::optional<UsualDifferences> usual_differences(const MinuteSums& day, const std::vector<model::PastTime>& starts,
                                                  const Figure& figure, double least, const WindowPair& windows) {
  if (day.minutes() < 2 || windows.minutes_before == 0 || windows.minutes_after == 0) {
    return std::nullopt;
  }
  const Values first = of_each_stretch(day, starts, figure, least, windows.minutes_before);
  const Values second = windows.minutes_before == windows.minutes_after
                            ? first
                            : of_each_stretch(day, starts, figure, least, windows.minutes_after);
  const auto before = static_cast<double>(windows.minutes_before);
  const auto after = static_cast<double>(windows.minutes_after);
  if (const auto pairs = spread_of(differences(first, second, starts, windows.apart), before + after)) {
    return pairs;
  }
  // Too far apart for one day: each is then somewhere in it.
  const auto earlier = spread_of(from_their_mean(first), before);
  const auto later = spread_of(from_their_mean(second), after);
  if (!earlier || !later) {
    return std::nullopt;
  }
  return UsualDifferences{earlier->variance + later->variance, std::min(earlier->degrees, later->degrees)};
}

}  // namespace ssdpulse::analysis::comparison
