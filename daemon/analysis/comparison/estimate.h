// SPDX-License-Identifier: Apache-2.0
// estimate(): the value of a figure in one window, and how far off it can be by chance. Pure; same seed, same answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "daemon/analysis/comparison/block_draws.h"

namespace ssdpulse::analysis::comparison {

/// A figure computed from sums over minutes.
struct Figure {
  using Sums = std::span<const double>;

  std::function<std::optional<double>(Sums)> log_value;  // natural logarithm; absent: there is no such figure
  /// The part of one minute that decides it, given its log_value: the samples beyond a quantile, the numerator of a
  /// ratio.
  std::function<double(Sums, double)> mass;
  std::function<double(Sums)> samples = [](Sums) { return 0.0; };  // behind the figure
  /// Variance of log_value from the number of samples alone, as if they were independent.
  std::function<double(Sums)> sampling_variance = [](Sums) { return 0.0; };
  /// The figure itself if it has no logarithm: 0, or absent if it is not known.
  std::function<std::optional<double>(Sums)> value_of_none = [](Sums) { return std::nullopt; };
};

struct Estimate {
  double log_value = 0;
  double variance = 0;       // of log_value
  double degrees = 0;        // of freedom of the variance
  double most_variance = 0;  // if minutes are as alike as they are on busy disks, which few minutes do not show
  std::size_t block_minutes = 0;
  double blocks = 0;  // that carry the figure: fewer than there are if a few minutes decide it
  double longer = 1;  // the factor by which a window must be longer to have enough blocks; 1: this one has
};

struct EstimateSettings {
  std::size_t draws = 2000;
  std::uint64_t seed = 1;
};

/// Absent if the figure has no log_value in the whole window.
std::optional<Estimate> estimate(const MinuteSums& sums, const Figure& figure, const EstimateSettings& settings);

}  // namespace ssdpulse::analysis::comparison
