// SPDX-License-Identifier: Apache-2.0
// RowPlan: the figures of a report, and how each is computed from minutes; quantiles of pooled histograms, interpolated
// within buckets, among them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/compare/comparison.h"
#include "daemon/compare/load_classes.h"

namespace ssdpulse::compare {

/// A bucket is 9 % wide, so a quantile is off by at most 4.4 %: a smaller change does not count.
inline constexpr double kResolution = 0.044;

/// Fewer samples beyond a quantile say nothing about it.
inline constexpr std::uint64_t kMinBeyond = 30;

/// Natural logarithm of the seconds below which this share (0..1) of the weighted samples lies, interpolated linearly
/// in logarithms within the bucket. `buckets` as in bpf/abi/latency_buckets.h from `first` on, possibly weighted.
/// Absent if there are no samples, or if it is outside the buckets' range.
std::optional<double> log_quantile(std::span<const double> buckets, double share, std::size_t first = 0);

/// How many samples are above `log_seconds`.
double samples_above(std::span<const double> buckets, double log_seconds, std::size_t first = 0);

/// The samples that a quantile needs to be shown: p99 3,000, p99.9 30,000.
std::uint64_t samples_needed(double share);

/// By how much a usual minute of one window exceeds one of another, whatever a few extreme minutes were, by the
/// Hodges-Lehmann estimator: the median of all differences, a value of `after` less one of `before`, in their unit;
/// of an even number of differences the upper of the two middle ones. Absent if either is empty. Of more than 2000
/// values, evenly spaced ones are compared, so that there are at most four million differences (32 MB).
std::optional<double> hodges_lehmann_shift(std::vector<double> before, std::vector<double> after);

/// What a figure needs from both windows and the day before them: sums with the same columns.
struct Columns {
  MinuteSums before;
  MinuteSums after;
  MinuteSums day;
  Figure figure;
};

/// One row before it is computed.
struct RowPlan {
  std::string id;
  std::string what;
  Unit unit = Unit::seconds;
  double resolution = 0;
  std::vector<model::Latency> histogram;  // a quantile of the sum of these ...
  double quantile = 0;
  std::vector<model::Latency> numerator = {};  // ... or the ratio of two sums of times
  std::vector<model::Latency> denominator = {};
  bool usual = false;  // also for the usual minute
};
std::vector<RowPlan> latency_rows();

/// The ratio of two sums.
Figure ratio_figure();

/// The number of I/Os behind a row.
double samples(const RowPlan& plan, const std::vector<model::MinuteOf>& minutes);
/// Only if there is at least one such I/O.
Columns columns_of(const RowPlan& plan, const std::vector<model::MinuteOf>& before,
                   const std::vector<model::MinuteOf>& after, const std::vector<model::MinuteOf>& day);
/// The figure's logarithm in each minute that has enough samples.
std::vector<double> of_each_minute(const MinuteSums& sums, const Figure& figure, double min_samples);

/// Each minute multiplied by its weight; minutes without a weight are left out.
MinuteSums weighted(const MinuteSums& sums, const std::vector<double>& weights);

std::vector<LoadRow> load_rows(const Question& question);
std::vector<Rates> rates_of(const std::vector<model::MinuteOf>& minutes);
double measured_seconds(const std::vector<model::MinuteOf>& minutes);
double bytes_of(const std::vector<model::MinuteOf>& minutes, model::Operation operation);

/// Write amplification and wear: rows without a verdict yet.
std::vector<Row> wear_rows(const Question& question);

}  // namespace ssdpulse::compare
