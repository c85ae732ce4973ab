// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/comparison/comparison.h"

#include <algorithm>
#include <cmath>

#include "daemon/analysis/comparison/figures.h"
#include "daemon/analysis/comparison/hodges_lehmann.h"
#include "daemon/analysis/comparison/latency_quantile.h"

namespace ssdpulse::analysis::comparison {

namespace {

using Minutes = std::vector<model::MinuteOf>;

std::optional<double> value_of(const Columns& columns, const MinuteSums& sums) {
  const std::vector<double> total = sums.total();
  const auto value = columns.figure.log_value(total);
  return value ? std::optional(std::exp(*value)) : columns.figure.value_of_none(total);
}

/// Absent, with the reason in the row, if there are too few minutes.
std::optional<Change> change_of(Row& row, const RowPlan& plan, const Figure& figure, const MinuteSums& before,
                                const MinuteSums& after, EstimateSettings chance, double hours) {
  if (before.cells == after.cells) {
    return change_within(1, 1, 1);
  }
  const auto earlier = estimate(before, figure, chance);
  ++chance.seed;
  const auto later = estimate(after, figure, chance);
  if (!earlier || !later) {
    row.reason = plan.histogram.empty() ? "there is none in one of the windows"
                                        : "out of the range that is measured (1 us to 64 s)";
    return std::nullopt;
  }
  const double longer = std::max(earlier->longer, later->longer);
  if (longer > 1) {
    row.reason = "a few minutes decide it";
    row.hours_needed = longer * hours;
    return std::nullopt;
  }
  return change_between(*earlier, *later, plan.resolution);
}

void compare_usual_minutes(Row& row, const RowPlan& plan, const Columns& columns) {
  const auto least = static_cast<double>(least_samples(plan.quantile));
  if (const auto difference = usual_difference(of_each_minute(columns.before, columns.figure, least),
                                               of_each_minute(columns.after, columns.figure, least))) {
    row.usual = std::exp(*difference);
  }
}

bool few(Row& row, const RowPlan& plan, bool compared) {
  const double least =
      plan.histogram.empty() ? static_cast<double>(kLeastBeyond) : static_cast<double>(least_samples(plan.quantile));
  const bool few_before = compared && row.n_before < least;
  const bool few_after = row.n_after < least;
  row.before = few_before ? std::nullopt : row.before;
  row.after = few_after ? std::nullopt : row.after;
  if (few_before || few_after) {
    row.reason = std::string("too few I/Os ") +
                 (!compared                 ? ""
                  : few_before && few_after ? "in both windows "
                  : few_before              ? "before "
                                            : "after ") +
                 "to say: " + std::to_string(static_cast<std::uint64_t>(least)) + " are needed";
  }
  return few_before || few_after;
}

std::optional<Row> latency_row(const Question& question, const RowPlan& plan, const LoadMatch& match, bool adjust) {
  const Minutes none;
  const Minutes& before = question.before ? question.before->minutes : none;
  const Minutes& after = question.after.minutes;
  Row row{.id = plan.id, .what = plan.what, .unit = plan.unit};
  row.n_before = samples(plan, before);
  row.n_after = samples(plan, after);
  if (row.n_before + row.n_after == 0) {
    return std::nullopt;
  }
  const Columns columns = columns_of(plan, before, after);
  row.before = value_of(columns, columns.before);
  row.after = value_of(columns, columns.after);
  if (few(row, plan, question.before.has_value()) || !question.before) {
    return row;
  }
  const double hours = std::max(measured_seconds(before), measured_seconds(after)) / 3600;
  row.raw = change_of(row, plan, columns.figure, columns.before, columns.after, question.chance, hours);
  if (adjust) {
    row.reason.clear();
    row.hours_needed.reset();
    row.adjusted = change_of(row, plan, columns.figure, weighted(columns.before, match.before),
                             weighted(columns.after, match.after), question.chance, hours);
    row.raw = row.adjusted ? row.raw : std::nullopt;  // no verdict about a load other than the one asked for
  }
  if (plan.usual) {
    compare_usual_minutes(row, plan, columns);
  }
  return row;
}

/// A drive's wear per day depends on the bytes written per day: weighting the minutes cannot remove that.
bool goes_with_load(const Row& row) { return row.id == "wear.media_bytes" || row.id == "wear.percentage_used"; }

void judge(Comparison& comparison) {
  std::vector<std::optional<Change>> changes;
  for (const Row& row : comparison.rows) {
    changes.push_back(comparison.load_differs && goes_with_load(row) ? std::nullopt : row.answer());
  }
  const std::vector<bool> shown = holm(changes);
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    Row& row = comparison.rows[i];
    if (comparison.common_load < kLeastCommon) {
      row.verdict = Verdict::not_comparable;
      row.reason = "the load was another one";
    } else if (!changes[i]) {
      row.verdict = Verdict::cannot_tell;
      row.reason = row.answer() ? "the load differs, and this goes with it" : row.reason;
    } else {
      row.verdict = verdict_of(*changes[i], shown[i]);
    }
    if (row.verdict == Verdict::cannot_tell && changes[i]) {
      const double times = times_longer(*changes[i], kResolution);
      row.reason = "the interval is too wide";
      row.hours_needed = std::max(comparison.hours_before, comparison.hours_after) * std::max(times, 1.0);
    }
  }
}

/// Whether the load differs by more than the margin that makes no difference.
bool differs(const std::vector<LoadRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const LoadRow& row) {
    const bool counts =
        row.id == "read.bytes" || row.id == "write.bytes" || row.id == "read.ios" || row.id == "write.ios";
    if (!counts || !row.before || !row.after || std::max(*row.before, *row.after) == 0) {
      return false;
    }
    return std::min(*row.before, *row.after) * (1 + kMargin) < std::max(*row.before, *row.after);
  });
}

}  // namespace

Comparison compare(const Question& question, const std::function<void(double)>& progress) {
  Comparison result{.device = question.device, .after = question.after.window};
  result.hours_after = measured_seconds(question.after.minutes) / 3600;
  result.load = load_rows(question);
  LoadMatch match;
  if (question.before) {
    result.before = question.before->window;
    result.hours_before = measured_seconds(question.before->minutes) / 3600;
    match = match_load(rates_of(question.before->minutes), rates_of(question.after.minutes));
    result.common_load = match.common;
    result.load_differs = differs(result.load);
  }
  const bool adjust = result.load_differs && match.common >= kLeastCommon;
  const std::vector<RowPlan> plans = latency_rows();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (auto row = latency_row(question, plans[i], match, adjust)) {
      result.rows.push_back(std::move(*row));
    }
    if (progress) {
      progress(static_cast<double>(i + 1) / static_cast<double>(plans.size()));
    }
  }
  for (Row& row : wear_rows(question)) {
    result.rows.push_back(std::move(row));
  }
  if (question.before) {
    judge(result);
  }
  add_notes(question, result);
  return result;
}

bool any_worse(const Comparison& comparison) {
  return std::any_of(comparison.rows.begin(), comparison.rows.end(),
                     [](const Row& row) { return row.verdict == Verdict::worse; });
}

}  // namespace ssdpulse::analysis::comparison
