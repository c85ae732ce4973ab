// SPDX-License-Identifier: Apache-2.0
// The figures of a report, and how each is computed from minutes. Only for the files of this directory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/analysis/comparison/comparison.h"
#include "daemon/analysis/comparison/load_classes.h"

namespace ssdpulse::analysis::comparison {

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
Columns columns_of(const RowPlan& plan, const std::vector<model::MinuteOf>& before,
                   const std::vector<model::MinuteOf>& after, const std::vector<model::MinuteOf>& day);
/// The figure's logarithm in each minute that has enough samples.
std::vector<double> of_each_minute(const MinuteSums& sums, const Figure& figure, double least_samples);

/// Each minute multiplied by its weight; minutes without a weight are left out.
MinuteSums weighted(const MinuteSums& sums, const std::vector<double>& weights);

std::vector<LoadRow> load_rows(const Question& question);
std::vector<Rates> rates_of(const std::vector<model::MinuteOf>& minutes);
double measured_seconds(const std::vector<model::MinuteOf>& minutes);
double bytes_of(const std::vector<model::MinuteOf>& minutes, model::Operation operation);

/// Write amplification and wear: rows without a verdict yet.
std::vector<Row> wear_rows(const Question& question);

/// Notes to go with the table; a verdict that must not be given is withdrawn.
void add_notes(const Question& question, Comparison& comparison);

}  // namespace ssdpulse::analysis::comparison
