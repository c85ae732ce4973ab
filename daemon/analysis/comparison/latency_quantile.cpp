// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/comparison/latency_quantile.h"

#include <linux/types.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "bpf/abi/latency_buckets.h"

namespace ssdpulse::analysis::comparison {

namespace {

constexpr double kStepsPerOctave = 8;  // schema 3

/// Where a word begins, in steps above a second.
double begin_of(std::size_t word) {
  return static_cast<double>(word) - LATENCY_FIRST_NATIVE_WORD + LATENCY_FIRST_NATIVE_INDEX - 1;
}

}  // namespace

std::optional<double> log_quantile(std::span<const double> words, double share, std::size_t first) {
  const double total = std::accumulate(words.begin(), words.end(), 0.0);
  double left = share * total;
  std::size_t at = 0;
  while (at < words.size() && words[at] < left) {
    left -= words[at];
    ++at;
  }
  const std::size_t word = first + at;
  if (total <= 0 || at >= words.size() || word < LATENCY_FIRST_NATIVE_WORD || word >= LATENCY_OVER_WORD) {
    return std::nullopt;
  }
  return (begin_of(word) + left / words[at]) / kStepsPerOctave * std::numbers::ln2;
}

double samples_above(std::span<const double> words, double log_seconds, std::size_t first) {
  const double steps = log_seconds / std::numbers::ln2 * kStepsPerOctave;
  double above = 0;
  for (std::size_t at = 0; at < words.size(); ++at) {
    above += words[at] * std::clamp(begin_of(first + at) + 1 - steps, 0.0, 1.0);
  }
  return above;
}

std::uint64_t least_samples(double share) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(kMinBeyond) / (1 - share)));
}

}  // namespace ssdpulse::analysis::comparison
