// SPDX-License-Identifier: Apache-2.0
// Quantiles of pooled histograms, interpolated within buckets. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ssdpulse::analysis::comparison {

/// A bucket is 9 % wide, so a quantile is off by at most 4.4 %: a smaller change does not count.
inline constexpr double kResolution = 0.044;

/// Fewer samples beyond a quantile say nothing about it.
inline constexpr std::uint64_t kMinBeyond = 30;

/// Natural logarithm of the seconds below which this share (0..1) of the weighted samples lies, interpolated linearly
/// in logarithms within the bucket. `words` as in bpf/abi/latency_buckets.h from `first` on, possibly weighted. Absent
/// if there are no samples, or if it is outside the buckets' range.
std::optional<double> log_quantile(std::span<const double> words, double share, std::size_t first = 0);

/// How many samples are above `log_seconds`.
double samples_above(std::span<const double> words, double log_seconds, std::size_t first = 0);

/// The samples that a quantile needs to be shown: p99 3,000, p99.9 30,000.
std::uint64_t least_samples(double share);

}  // namespace ssdpulse::analysis::comparison
