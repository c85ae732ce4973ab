// SPDX-License-Identifier: Apache-2.0
#include "daemon/compare/verdict.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ssdpulse::compare {
namespace {

/// A value to divide by: Lentz's method needs only that it is not 0.
double away_from_zero(double value) {
  constexpr double kTiny = 1e-300;
  return std::fabs(value) < kTiny ? kTiny : value;
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22) by the modified method of Lentz; converges
/// quickly for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMaxSteps = 500;  // beyond that the result is as good as the steps so far
  constexpr double kPrecision = 1e-14;
  double c = 1;                                              // ratio of successive numerators
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));  // ratio of successive denominators, inverted
  double fraction = d;
  for (int m = 1; m <= kMaxSteps; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= d * c;
    if (std::fabs(d * c - 1) < kPrecision) {
      break;
    }
  }
  return fraction;
}

/// I_x(a, b), 0 < x < 1. The fraction converges slowly beyond the mean: there by symmetry, 1 - I_(1-x)(b, a).
double regularized_incomplete_beta(double a, double b, double x) {
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

constexpr double kMinPairs = 8;  // that do not overlap
constexpr double kMinDegreesOfFreedom = 3;

using Values = std::vector<std::optional<double>>;

/// The figure of the stretch of so many minutes that begins at each; absent where a minute is missing.
Values figure_of_stretches(const MinuteSums& day, const std::vector<model::PastTime>& starts, const Figure& figure,
                           double min_samples, std::size_t minutes) {
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
    if (figure.samples(sum) >= min_samples) {
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

std::vector<double> distances_from_mean(const Values& values) {
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
  for (const double distance : off) {
    squares += distance * distance;
    fourths += distance * distance * distance * distance;
  }
  const auto count = static_cast<double>(off.size());
  const double variance = squares / count;
  const double of_squares = fourths / count - variance * variance;
  const double degrees = of_squares > 0 ? kOverlap * independent * 2 * variance * variance / of_squares : HUGE_VAL;
  return UsualDifferences{std::max(variance, variance_by_rank(off)),
                          std::clamp(degrees, kMinDegreesOfFreedom, kOverlap * independent)};
}

}  // namespace

double student_tail(double t, double degrees_of_freedom) {
  if (t <= 0) {
    return 0.5;
  }
  return std::isfinite(t) ? regularized_incomplete_beta(degrees_of_freedom / 2, 0.5,
                                                        degrees_of_freedom / (degrees_of_freedom + t * t)) /
                                2
                          : 0;
}

double student_quantile(double tail, double degrees_of_freedom) {
  constexpr double kMaxQuantile = 1e9;  // with one degree of freedom, a tail of 3e-10
  constexpr int kHalvings = 80;         // more than a double can tell apart
  double low = 0;
  double high = 1;
  while (student_tail(high, degrees_of_freedom) > tail && high < kMaxQuantile) {
    high *= 2;
  }
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (student_tail(middle, degrees_of_freedom) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

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

std::optional<UsualDifferences> usual_differences(const MinuteSums& day, const std::vector<model::PastTime>& starts,
                                                  const Figure& figure, double min_samples, const WindowPair& windows) {
  if (day.minutes() < 2 || windows.minutes_before == 0 || windows.minutes_after == 0) {
    return std::nullopt;
  }
  const Values first = figure_of_stretches(day, starts, figure, min_samples, windows.minutes_before);
  const Values second = windows.minutes_before == windows.minutes_after
                            ? first
                            : figure_of_stretches(day, starts, figure, min_samples, windows.minutes_after);
  const auto before = static_cast<double>(windows.minutes_before);
  const auto after = static_cast<double>(windows.minutes_after);
  if (const auto pairs = spread_of(differences(first, second, starts, windows.apart), before + after)) {
    return pairs;
  }
  // Too far apart for one day: each is then somewhere in it.
  const auto earlier = spread_of(distances_from_mean(first), before);
  const auto later = spread_of(distances_from_mean(second), after);
  if (!earlier || !later) {
    return std::nullopt;
  }
  return UsualDifferences{earlier->variance + later->variance, std::min(earlier->degrees, later->degrees)};
}

}  // namespace ssdpulse::compare
