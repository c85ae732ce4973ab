// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/comparison/block_length.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace ssdpulse::analysis::comparison {

namespace {

constexpr double kMinMinutes = 5;
constexpr std::size_t kMinBlocks = 8;

std::vector<double> autocovariances(std::span<const double> series, std::size_t most_lag) {
  const double count = static_cast<double>(series.size());
  const double mean = std::accumulate(series.begin(), series.end(), 0.0) / count;
  std::vector<double> result(most_lag + 1);
  for (std::size_t lag = 0; lag <= most_lag; ++lag) {
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

}  // namespace

BlockLength block_length(std::span<const double> series) {
  const double count = static_cast<double>(series.size());
  const double least = std::max(kMinMinutes, std::ceil(std::cbrt(count)));
  const std::size_t most = std::max<std::size_t>(1, series.size() / kMinBlocks);
  BlockLength result{std::min(static_cast<std::size_t>(least), most), least};
  if (series.size() < kMinBlocks) {
    return result;
  }
  const auto run = static_cast<std::size_t>(std::max(5.0, std::ceil(std::sqrt(std::log10(count)))));
  const std::size_t most_lag = std::min(series.size() - 1, static_cast<std::size_t>(std::ceil(std::sqrt(count))) + run);
  const std::vector<double> covariance = autocovariances(series, most_lag);
  if (covariance[0] <= 0) {
    return result;  // all minutes are alike
  }
  result.autocorrelation = covariance[1] / covariance[0];
  const std::size_t wide = std::min(2 * std::max<std::size_t>(last_lag(covariance, run, count), 1), most_lag);
  double spectrum = covariance[0];
  double slope = 0;
  for (std::size_t lag = 1; lag <= wide; ++lag) {
    const double part = 2 * flat_top(static_cast<double>(lag) / static_cast<double>(wide)) * covariance[lag];
    spectrum += part;
    slope += part * static_cast<double>(lag);
  }
  const double spread = 4.0 / 3 * spectrum * spectrum;
  const double optimal = spread > 0 ? std::cbrt(2 * slope * slope / spread * count) : least;
  result.wanted = std::max(least, std::ceil(optimal));
  result.minutes = static_cast<std::size_t>(std::clamp(result.wanted, 1.0, static_cast<double>(most)));
  return result;
}

}  // namespace ssdpulse::analysis::comparison
