// SPDX-License-Identifier: Apache-2.0
// The figures of a report, and how each is taken from minutes. For the files of this room alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/analysis/comparison/comparison.h"
#include "daemon/analysis/comparison/load_classes.h"

namespace ssdpulse::analysis::comparison {

/// What a figure needs of both windows: sums with the same columns.
struct Columns {
  MinuteSums before;
  MinuteSums after;
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
  bool usual = false;  // of the usual minute, too
};
std::vector<RowPlan> latency_rows();

/// The ratio of two sums.
Figure ratio_figure();

/// I/Os behind it.
double samples(const RowPlan& plan, const std::vector<model::MinuteOf>& minutes);
Columns columns_of(const RowPlan& plan, const std::vector<model::MinuteOf>& before,
                   const std::vector<model::MinuteOf>& after);
/// Logarithms, of the minutes that have enough samples.
std::vector<double> of_each_minute(const MinuteSums& sums, const Figure& figure, double least_samples);

/// Each minute with its weight; those of none are left out.
MinuteSums weighted(const MinuteSums& sums, const std::vector<double>& weights);

std::vector<LoadRow> load_rows(const Question& question);
std::vector<Rates> rates_of(const std::vector<model::MinuteOf>& minutes);
double measured_seconds(const std::vector<model::MinuteOf>& minutes);
double bytes_of(const std::vector<model::MinuteOf>& minutes, model::Operation operation);

/// Write amplification and wear: rows without a verdict yet.
std::vector<Row> wear_rows(const Question& question);

/// What is to be known beside the table; a verdict that may not be given is taken back.
void add_notes(const Question& question, Comparison& comparison);

}  // namespace ssdpulse::analysis::comparison
