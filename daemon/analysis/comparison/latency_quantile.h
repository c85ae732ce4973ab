// SPDX-License-Identifier: Apache-2.0
// Quantiles of pooled histograms, between the bounds of their buckets. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ssdpulse::analysis::comparison {

/// A bucket is 9 % wide, so a quantile is off by at most 4.4 %: a smaller change is none.
inline constexpr double kResolution = 0.044;

/// Fewer samples beyond a quantile say nothing of it.
inline constexpr std::uint64_t kLeastBeyond = 30;

/// Natural logarithm of the seconds below which this share (0..1) of the weighted samples lies, on a straight line
/// through the bucket in logarithms. `words` as in bpf/abi/latency_buckets.h from `first` on, possibly weighted.
/// Nothing of no samples, and nothing where it is out of the buckets' range.
std::optional<double> log_quantile(std::span<const double> words, double share, std::size_t first = 0);

/// How many of them are above such a value.
double samples_above(std::span<const double> words, double log_seconds, std::size_t first = 0);

/// The samples that a quantile needs to be shown: p99 3,000, p99.9 30,000.
std::uint64_t least_samples(double share);

}  // namespace ssdpulse::analysis::comparison
