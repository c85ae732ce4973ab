// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/comparison/estimate.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "daemon/analysis/comparison/block_length.h"

namespace ssdpulse::analysis::comparison {

namespace {

constexpr double kMinBlocks = 8;
// Circular blocks overlap: their variance is as certain as that of 1.5 times as many (Meketon and Schmeiser 1984).
constexpr double kOverlap = 1.5;
constexpr double kAlike = 0.8;  // correlation of one minute and the next

/// How much each minute moves the figure, compared with its value without that minute.
std::vector<double> influences(const MinuteSums& sums, const std::vector<double>& total, const Figure& figure,
                               double log_value) {
  std::vector<double> result(sums.minutes());
  std::vector<double> others(sums.width);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::span<const double> minute = sums.minute(i);
    std::transform(total.begin(), total.end(), minute.begin(), others.begin(), std::minus<>());
    result[i] = log_value - figure.log_value(others).value_or(log_value);
  }
  return result;
}

/// Blocks ignore that their ends are alike, and that a mean is closer to its own minutes than the true mean is. By what
/// factor is their variance too small, if each minute takes over `correlation` of the one before?
double missing_variance(double correlation, double block, double minutes) {
  constexpr double kMaxCorrelation = 0.97;
  const double corrected =
      std::clamp(correlation + (1 + 3 * correlation) / minutes, 0.0, kMaxCorrelation);  // Kendall 1954
  double whole = 1;
  double seen = 1;
  double power = 1;
  for (double lag = 1; lag < minutes && power > 1e-6; ++lag) {
    power *= corrected;
    whole += 2 * (1 - lag / minutes) * power;
    seen += lag < block ? 2 * (1 - lag / block) * power : 0;
  }
  constexpr double kMinSeenShare = 0.05;
  return whole / std::max(seen - block * whole / minutes, kMinSeenShare * whole);
}

/// The effective number of blocks: fewer than there are if the mass is uneven.
double carrying_blocks(const std::vector<double>& masses, std::size_t block) {
  double sum = 0;
  double squares = 0;
  for (std::size_t start = 0; start < masses.size(); ++start) {
    double mass = 0;
    for (std::size_t i = 0; i < block; ++i) {
      mass += masses[(start + i) % masses.size()];
    }
    sum += mass;
    squares += mass * mass;
  }
  return squares > 0 ? sum * sum / squares / static_cast<double>(block) : 0;
}

double variance_of_draws(const MinuteSums& sums, std::size_t block, const Figure& figure,
                         const EstimateSettings& settings, double log_value) {
  double count = 0;
  double sum = 0;
  double squares = 0;
  BlockDraws(sums, block).draw(settings.draws, settings.seed, [&](std::span<const double> drawn) {
    if (const auto value = figure.log_value(drawn)) {
      const double off = *value - log_value;
      ++count;
      sum += off;
      squares += off * off;
    }
  });
  return count < 2 ? 0 : std::max(0.0, (squares - sum * sum / count) / (count - 1));
}

}  // namespace

std::optional<Estimate> estimate(const MinuteSums& sums, const Figure& figure, const EstimateSettings& settings) {
  const std::vector<double> total = sums.total();
  const auto log_value = figure.log_value(total);
  if (!log_value) {
    return std::nullopt;
  }
  const auto minutes = static_cast<double>(sums.minutes());
  const BlockLength length = block_length(influences(sums, total, figure, *log_value));
  Estimate result{.log_value = *log_value};
  result.block_minutes = std::clamp<std::size_t>(length.minutes, 1, sums.minutes());
  const auto block = static_cast<double>(result.block_minutes);
  std::vector<double> masses(sums.minutes());
  for (std::size_t i = 0; i < masses.size(); ++i) {
    masses[i] = figure.mass(sums.minute(i), *log_value);
  }
  const double carrying = std::clamp(carrying_blocks(masses, result.block_minutes), 1.0, minutes / block);
  result.blocks = carrying;
  // A variance from few blocks is itself uncertain: that is included here, by Student's distribution, and nowhere else.
  result.degrees = std::max(1.0, kOverlap * (result.blocks - 1));
  const double drawn = variance_of_draws(sums, result.block_minutes, figure, settings, *log_value);
  result.variance = drawn * missing_variance(length.autocorrelation, block, minutes);
  result.most_variance = drawn * missing_variance(std::max(length.autocorrelation, kAlike), block, minutes);
  result.longer = std::max({1.0, kMinBlocks / carrying, kMinBlocks * length.wanted / minutes});
  return result;
}

}  // namespace ssdpulse::analysis::comparison
