// SPDX-License-Identifier: Apache-2.0
#include "daemon/compare/window_estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace ssdpulse::compare {
namespace {

void add(std::vector<double>& sum, const double* more) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += more[i];
  }
}

constexpr double kMinMinutes = 5;
constexpr std::size_t kMinBlocksOfWindow = 8;

std::vector<double> autocovariances(std::span<const double> series, std::size_t max_lag) {
  const double count = static_cast<double>(series.size());
  const double mean = std::accumulate(series.begin(), series.end(), 0.0) / count;
  std::vector<double> result(max_lag + 1);
  for (std::size_t lag = 0; lag <= max_lag; ++lag) {
    for (std::size_t i = lag; i < series.size(); ++i) {
      result[lag] += (series[i] - mean) * (series[i - lag] - mean);
    }
    result[lag] /= count;
  }
  return result;
}

/// 1 up to one half, then falling to 0 at 1.
double flat_top(double at) { return std::clamp(2 * (1 - std::fabs(at)), 0.0, 1.0); }

/// The last lag before a run of `run` autocorrelations that are indistinguishable from zero.
std::size_t last_lag(const std::vector<double>& covariance, std::size_t run, double count) {
  const double threshold = 2 * std::sqrt(std::log10(count) / count) * covariance[0];
  std::size_t quiet = 0;
  for (std::size_t lag = 1; lag < covariance.size(); ++lag) {
    quiet = std::fabs(covariance[lag]) < threshold ? quiet + 1 : 0;
    if (quiet == run) {
      return lag - run;
    }
  }
  return covariance.size() - 1;
}

constexpr double kMinBlocks = 8;
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

/// Blocks ignore that their ends are alike, and that a mean is closer to its own minutes than the true mean is. Returns
/// the factor by which their variance is too small if each minute takes over `correlation` of the one before.
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

std::vector<double> MinuteSums::total() const {
  std::vector<double> sum(width);
  for (std::size_t i = 0; i < minutes(); ++i) {
    add(sum, minute(i).data());
  }
  return sum;
}

BlockDraws::BlockDraws(const MinuteSums& sums, std::size_t block)
    : width_(sums.width),
      minutes_(sums.minutes()),
      block_(std::clamp<std::size_t>(block, 1, std::max<std::size_t>(1, minutes_))) {
  rest_ = minutes_ % block_;
  add_up(of_block_, sums, block_);
  add_up(of_rest_, sums, rest_);
}

void BlockDraws::add_up(std::vector<double>& starts, const MinuteSums& sums, std::size_t length) const {
  if (length == 0) {
    return;
  }
  starts.resize(minutes_ * width_);
  std::vector<double> sum(width_);
  for (std::size_t start = 0; start < minutes_; ++start) {
    // Each from scratch: a running sum would keep its rounding errors.
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::size_t i = 0; i < length; ++i) {
      add(sum, sums.minute((start + i) % minutes_).data());
    }
    std::copy(sum.begin(), sum.end(), starts.begin() + static_cast<std::ptrdiff_t>(start * width_));
  }
}

void BlockDraws::draw(std::size_t draws, std::uint64_t seed, const Use& use) const {
  if (minutes_ == 0) {
    return;
  }
  std::mt19937_64 random(seed);
  // Not std::uniform_int_distribution, whose numbers differ between libraries. The bias is below one in a million.
  const auto any_minute = [&] { return static_cast<std::size_t>((random() >> 32U) * minutes_ >> 32U); };
  std::vector<double> sum(width_);
  for (std::size_t drawn = 0; drawn < draws; ++drawn) {
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::size_t i = 0; i < minutes_ / block_; ++i) {
      add(sum, &of_block_[any_minute() * width_]);
    }
    if (rest_ != 0) {
      add(sum, &of_rest_[any_minute() * width_]);
    }
    use(sum);
  }
}

BlockLength block_length(std::span<const double> series) {
  const double count = static_cast<double>(series.size());
  const double shortest = std::max(kMinMinutes, std::ceil(std::cbrt(count)));
  const std::size_t longest = std::max<std::size_t>(1, series.size() / kMinBlocksOfWindow);
  BlockLength result{std::min(static_cast<std::size_t>(shortest), longest), shortest};
  if (series.size() < kMinBlocksOfWindow) {
    return result;
  }
  const auto run = static_cast<std::size_t>(std::max(5.0, std::ceil(std::sqrt(std::log10(count)))));
  const std::size_t max_lag = std::min(series.size() - 1, static_cast<std::size_t>(std::ceil(std::sqrt(count))) + run);
  const std::vector<double> covariance = autocovariances(series, max_lag);
  if (covariance[0] <= 0) {
    return result;  // all minutes are alike
  }
  result.autocorrelation = covariance[1] / covariance[0];
  const std::size_t wide = std::min(2 * std::max<std::size_t>(last_lag(covariance, run, count), 1), max_lag);
  double spectrum = covariance[0];
  double slope = 0;
  for (std::size_t lag = 1; lag <= wide; ++lag) {
    const double part = 2 * flat_top(static_cast<double>(lag) / static_cast<double>(wide)) * covariance[lag];
    spectrum += part;
    slope += part * static_cast<double>(lag);
  }
  const double spread = 4.0 / 3 * spectrum * spectrum;
  const double optimal = spread > 0 ? std::cbrt(2 * slope * slope / spread * count) : shortest;
  result.wanted = std::max(shortest, std::ceil(optimal));
  result.minutes = static_cast<std::size_t>(std::clamp(result.wanted, 1.0, static_cast<double>(longest)));
  return result;
}

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
  result.max_variance = drawn * missing_variance(std::max(length.autocorrelation, kAlike), block, minutes);
  result.longer = std::max({1.0, kMinBlocks / carrying, kMinBlocks * length.wanted / minutes});
  return result;
}

}  // namespace ssdpulse::compare
