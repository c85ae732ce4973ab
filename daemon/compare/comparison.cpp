// SPDX-License-Identifier: Apache-2.0
#include "daemon/compare/comparison.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "daemon/base/number_text.h"
#include "daemon/compare/window_figures.h"

namespace ssdpulse::compare {
namespace {

using model::Operation;

constexpr double kGibibyte = 1024.0 * 1024 * 1024;

void note(Comparison& comparison, const char* id, std::string text) {
  comparison.notes.push_back({id, std::move(text)});
}

/// A single setting may be the cause; if there are several, none can be named.
void note_settings(const Question& question, Comparison& comparison) {
  const auto between_windows = [&](const model::SettingChange& change) {
    return change.at >= question.before->window.to - std::chrono::minutes(1) && change.at <= question.after.window.from;
  };
  std::copy_if(question.settings.begin(), question.settings.end(), std::back_inserter(comparison.differing),
               between_windows);
  const std::size_t inside = question.settings.size() - comparison.differing.size();
  const std::size_t count = comparison.differing.size();
  if (count > 1) {
    note(comparison, "several-settings",
         std::to_string(count) + " settings differ: none of them can be named as the cause.");
  } else if (count == 1) {
    note(comparison, "one-setting",
         "One known setting differs. What else was done to this host or its load then is not known.");
  } else {
    note(comparison, "no-setting", "No known setting differs: these figures name no cause.");
  }
  if (inside > 0) {
    note(comparison, "changed-inside",
         util::count_text(inside, "setting") + " changed inside a window: it is a mix of before and after.");
  }
  note(comparison, "one-switch",
       "This is one switch from before to after. Switch back and again (A B A B) to rule out a coincidence.");
}

/// Bytes discarded since the first window ended, beyond what its rate of discards would give.
double unusual_discards(const Question& question) {
  const double seconds = measured_seconds(question.before->minutes);
  const double usual = seconds > 0 ? bytes_of(question.before->minutes, Operation::discard) / seconds : 0;
  const double since =
      bytes_of(question.between, Operation::discard) + bytes_of(question.after.minutes, Operation::discard);
  return since - usual * (measured_seconds(question.between) + measured_seconds(question.after.minutes));
}

/// After a trim or a format a drive is better for a while, whatever else was done.
void refuse_fresh_drive(const Question& question, Comparison& comparison) {
  const double discarded = unusual_discards(question);
  const double written = bytes_of(question.after.minutes, Operation::write);
  const double min_discarded = std::max(kGibibyte, question.capacity_bytes.value_or(0) / 100);
  if (discarded < min_discarded || discarded < written) {
    return;
  }
  bool refused = false;
  for (Row& row : comparison.rows) {
    if (row.verdict == Verdict::better) {
      row.verdict = Verdict::not_comparable;
      row.reason = "the drive is fresh from a trim or a format";
      refused = true;
    }
  }
  if (refused) {
    note(comparison, "fresh-drive",
         "More has been discarded since the first window than was written in the second: the drive is fresh. What is "
         "better now may not last. Compare again once as much has been written.");
  }
}

void note_wear(const Question& question, Comparison& comparison) {
  const auto is_wear = [](const Row& row) { return row.id.substr(0, 5) == "wear."; };
  if (std::none_of(comparison.rows.begin(), comparison.rows.end(), is_wear)) {
    return;
  }
  note(comparison, "no-life",
       "Half the write amplification does not mean twice the life: what wears a drive is the bytes written to its "
       "media per day.");
  const auto written_in = [](const Side& side) { return bytes_of(side.minutes, Operation::write); };
  const double written =
      std::min(question.before ? written_in(*question.before) : HUGE_VAL, written_in(question.after));
  if (!question.capacity_bytes || written < *question.capacity_bytes) {
    note(comparison, "not-settled",
         "Less than the whole drive was written in a window. Write amplification may not be settled yet.");
  }
}

/// Notes that less was measured than the window's length, or that only hours are kept.
void note_missing(Comparison& comparison, const char* id, const Side& side, const char* which, double time_scale) {
  const double whole = std::chrono::duration<double>(side.window.to - side.window.from).count() / time_scale;
  const double measured = measured_seconds(side.minutes);
  constexpr double kNearlyAll = 0.98;
  if (measured < kNearlyAll * whole) {
    note(comparison, id,
         std::to_string(static_cast<int>(std::floor(100 * measured / std::max(whole, 1.0)))) + " % of " + which +
             " was measured. The rest is missing, and not zero.");
  }
  if (std::any_of(side.minutes.begin(), side.minutes.end(),
                  [](const model::MinuteOf& minute) { return minute.length > std::chrono::minutes(1); })) {
    note(comparison, "hours-only",
         std::string("For ") + which + ", only hours are kept, not minutes: intervals are wider.");
  }
}

bool any_judged(const Comparison& comparison) {
  return std::any_of(comparison.rows.begin(), comparison.rows.end(),
                     [](const Row& row) { return row.verdict == Verdict::better || row.verdict == Verdict::worse; });
}

/// Where the intervals of windows too short for their own come from.
void note_short(const Question& question, Comparison& comparison) {
  const auto any_from = [&](IntervalFrom from) {
    return std::any_of(comparison.rows.begin(), comparison.rows.end(),
                       [&](const Row& row) { return row.answer() && row.from == from; });
  };
  if (any_from(IntervalFrom::last_day)) {
    note(comparison, "last-day",
         "The windows are too short to know how much they vary. Intervals show how far such windows differed in the " +
             util::duration_text(measured_seconds(question.day)) + " kept of the day before.");
  }
  if (any_from(IntervalFrom::few_minutes)) {
    note(comparison, "no-last-day",
         question.day.empty()
             ? "A few minutes decide some rows, so their intervals are wide. No day before them is kept."
             : "A few minutes decide some rows, so their intervals are wide. The day before the "
               "windows has too few I/Os of these kinds to help.");
  }
}

/// Notes to go with the table; a verdict that must not be given is withdrawn.
void add_notes(const Question& question, Comparison& comparison) {
  if (question.before) {
    note_missing(comparison, "missing-before", *question.before, "the window before", question.time_scale);
  }
  note_missing(comparison, "missing-after", question.after, question.before ? "the window after" : "the window",
               question.time_scale);
  if (question.time_scale != 1) {
    note(comparison, "scaled-time", util::time_scale_text(question.time_scale));
  }
  if (question.before) {
    refuse_fresh_drive(question, comparison);
    note_settings(question, comparison);
    note_short(question, comparison);
    if (comparison.common_load < kMinCommonShare) {
      note(comparison, "other-load",
           "The load was different: less than half of the minutes have a load that occurs in both windows.");
      if (any_judged(comparison)) {
        note(comparison, comparison.load_shift == LoadShift::less ? "less-load" : "more-load",
             comparison.load_shift == LoadShift::less
                 ? "The load was lower afterwards: that makes no disk slower, so it does not explain what is worse."
                 : "The load was higher afterwards: that makes no disk faster, so it does not explain what is better.");
      }
    } else if (comparison.load_differs) {
      note(comparison, "adjusted",
           "The load differs: changes and verdicts of latencies are for minutes weighted to the load before.");
    }
    note(comparison, "this-load",
         "All of this holds for the load of these windows; a benchmark says nothing about another load.");
  }
  note_wear(question, comparison);
}

using Minutes = std::vector<model::MinuteOf>;

std::optional<double> value_of(const Columns& columns, const MinuteSums& sums) {
  const std::vector<double> total = sums.total();
  const auto value = columns.figure.log_value(total);
  return value ? std::optional(std::exp(*value)) : columns.figure.value_of_none(total);
}

/// As many as there would be if all weights were alike.
std::size_t effective_minutes(const std::vector<double>& weights) {
  double sum = 0;
  double squares = 0;
  for (const double weight : weights) {
    sum += weight;
    squares += weight * weight;
  }
  return squares > 0 ? static_cast<std::size_t>(std::max(1.0, std::round(sum * sum / squares))) : 0;
}

/// What is known about the day before, in the columns of one figure.
struct Day {
  const MinuteSums& sums;
  const std::vector<model::PastTime>& starts;
  WindowPair windows;
  double min_samples;
  double hours;  // of the longer window
};

/// The variance of windows too short to know it: that of the day before, or more if their own minutes vary more than
/// that explains.
std::optional<UsualDifferences> variance_of_day(const Day& day, const Figure& figure, const MinuteSums& before,
                                                const MinuteSums& after, const Change& own) {
  auto usual = usual_differences(day.sums, day.starts, figure, day.min_samples, day.windows);
  if (!usual) {
    return std::nullopt;
  }
  // With fewer samples than on that day, chance alone moves a quantile further.
  const double of_day = figure.sampling_variance(day.sums.total()) * static_cast<double>(day.sums.minutes());
  const double expected = of_day / static_cast<double>(day.windows.minutes_before) +
                          of_day / static_cast<double>(day.windows.minutes_after);
  const double sampled = figure.sampling_variance(before.total()) + figure.sampling_variance(after.total());
  usual->variance += std::max(0.0, sampled - expected);
  // How well a day foretells the variance of a few other minutes: as well as this many values of their own would.
  constexpr double kUsualWeight = 4;
  const double degrees = kUsualWeight + own.degrees;
  const double both = (kUsualWeight * usual->variance + own.degrees * own.error * own.error) / degrees;
  return both > usual->variance ? UsualDifferences{both, std::min(degrees, usual->degrees)} : *usual;
}

/// Absent, with the verdict in the row, if one of the windows has no such figure.
std::optional<Change> change_of(Row& row, const RowPlan& plan, const Figure& figure, const MinuteSums& before,
                                const MinuteSums& after, const Day& day, EstimateSettings chance) {
  row.from = IntervalFrom::windows;
  row.hours_needed.reset();
  if (before.cells == after.cells) {
    return change_within(1, 1, 1);
  }
  const auto earlier = estimate(before, figure, chance);
  ++chance.seed;
  const auto later = estimate(after, figure, chance);
  if (!earlier || !later) {
    row.verdict = Verdict::not_comparable;
    row.reason = plan.histogram.empty() ? "there is none in one of the windows"
                                        : "out of the range that is measured (1 us to 64 s)";
    return std::nullopt;
  }
  const Change own = change_between(*earlier, *later, plan.resolution);
  if (std::max(earlier->longer, later->longer) <= 1) {
    return own;
  }
  if (const auto usual = variance_of_day(day, figure, before, after, own)) {
    row.from = IntervalFrom::last_day;
    return change_by(later->log_value - earlier->log_value, usual->variance, usual->degrees, plan.resolution);
  }
  row.from = IntervalFrom::few_minutes;
  row.hours_needed = std::max(earlier->longer, later->longer) * day.hours;  // to know their own variance
  return change_by(later->log_value - earlier->log_value, earlier->max_variance + later->max_variance,
                   std::max(1.0, std::min(earlier->blocks, later->blocks) - 1), plan.resolution);
}

void compare_usual_minutes(Row& row, const RowPlan& plan, const Columns& columns) {
  const auto needed = static_cast<double>(samples_needed(plan.quantile));
  if (const auto difference = hodges_lehmann_shift(of_each_minute(columns.before, columns.figure, needed),
                                                   of_each_minute(columns.after, columns.figure, needed))) {
    row.usual = std::exp(*difference);
  }
}

/// Whether there is nothing to compare; the verdict then says why.
bool has_too_few(Row& row, bool compared) {
  const bool none_before = compared && row.n_before == 0;
  const bool none_after = row.n_after == 0;
  const bool few_before = compared && row.n_before < row.n_needed;
  const bool few_after = row.n_after < row.n_needed;
  row.before = few_before ? std::nullopt : row.before;
  row.after = few_after ? std::nullopt : row.after;
  if (none_before || none_after) {
    row.verdict = compared ? std::optional(Verdict::no_data) : std::nullopt;
    row.reason = !compared ? "there were none" : none_before ? "there were none before" : "there were none after";
  } else if (few_before || few_after) {
    row.verdict = compared ? std::optional(Verdict::too_few) : std::nullopt;
    row.reason = std::string("too few for this figure") +
                 (!compared                 ? ""
                  : few_before && few_after ? " in both windows"
                  : few_before              ? " before"
                                            : " after") +
                 ": " + std::to_string(static_cast<std::uint64_t>(row.n_needed)) + " are needed";
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
  row.n_needed = static_cast<double>(plan.histogram.empty() ? kMinBeyond : samples_needed(plan.quantile));
  if (row.n_before + row.n_after == 0) {
    return std::nullopt;
  }
  const Columns columns = columns_of(plan, before, after, question.day);
  row.before = value_of(columns, columns.before);
  row.after = value_of(columns, columns.after);
  if (has_too_few(row, question.before.has_value()) || !question.before) {
    return row;
  }
  std::vector<model::PastTime> starts;
  for (const model::MinuteOf& minute : question.day) {
    starts.push_back(minute.start);
  }
  // A minute of the day with a quarter of the load is still one like these.
  const double min_of_day =
      plan.histogram.empty() ? 0 : std::max(row.n_needed, std::min(row.n_before, row.n_after) / 4);
  Day day{columns.day,
          starts,
          {before.size(), after.size(),
           static_cast<std::size_t>((question.after.window.from - question.before->window.from).count())},
          min_of_day,
          std::max(measured_seconds(before), measured_seconds(after)) / 3600};
  row.raw = change_of(row, plan, columns.figure, columns.before, columns.after, day, question.chance);
  if (adjust && row.raw) {
    day.windows.minutes_before = effective_minutes(match.before);
    day.windows.minutes_after = effective_minutes(match.after);
    row.adjusted = change_of(row, plan, columns.figure, weighted(columns.before, match.before),
                             weighted(columns.after, match.after), day, question.chance);
    row.raw = row.adjusted ? row.raw : std::nullopt;  // no verdict about a load other than the one asked for
  }
  if (plan.usual) {
    compare_usual_minutes(row, plan, columns);
  }
  return row;
}

/// A drive's wear per day depends on the bytes written per day: weighting the minutes cannot remove that.
bool goes_with_load(const Row& row) { return row.id == "wear.media_bytes" || row.id == "wear.percentage_used"; }

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

/// Less of everything, in I/Os no larger, makes no disk slower: what is worse then is worse. More likewise.
LoadShift shift_of(const Comparison& comparison) {
  if (comparison.common_load >= kMinCommonShare) {
    return LoadShift::none;
  }
  constexpr double kMinRate = 1;  // I/Os per second: an idle drive sleeps, and wakes up slowly
  constexpr auto kCounts = std::to_array<std::string_view>(
      {"read.ios", "write.ios", "read.bytes", "write.bytes", "read.size", "write.size"});
  bool less = true;
  bool more = true;
  double rate_before = 0;
  double rate_after = 0;
  for (const LoadRow& row : comparison.load) {
    if (std::find(kCounts.begin(), kCounts.end(), row.id) == kCounts.end()) {
      continue;
    }
    less = less && row.after.value_or(0) <= row.before.value_or(0) * (1 + kMargin);
    more = more && row.before.value_or(0) <= row.after.value_or(0) * (1 + kMargin);
    if (row.unit == Unit::per_second) {
      rate_before += row.before.value_or(0);
      rate_after += row.after.value_or(0);
    }
  }
  return std::min(rate_before, rate_after) < kMinRate ? LoadShift::other
         : less                                       ? LoadShift::less
         : more                                       ? LoadShift::more
                                                      : LoadShift::other;
}

/// Whether the load can explain the change.
bool by_load(const Comparison& comparison, const Row& row, LoadShift shift) {
  if (shift == LoadShift::none) {
    return comparison.load_differs && goes_with_load(row);
  }
  if (shift == LoadShift::other || row.unit != Unit::seconds) {
    return true;
  }
  return shift == LoadShift::less ? row.verdict != Verdict::worse : row.verdict != Verdict::better;
}

void judge(Comparison& comparison) {
  const LoadShift shift = comparison.load_shift = shift_of(comparison);
  std::vector<std::optional<Change>> changes;
  for (const Row& row : comparison.rows) {
    const bool open = shift == LoadShift::none ? !by_load(comparison, row, shift)
                                               : shift != LoadShift::other && row.unit == Unit::seconds;
    changes.push_back(open ? row.answer() : std::nullopt);
  }
  const std::vector<double> levels = holm(changes);
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    Row& row = comparison.rows[i];
    if (!row.answer()) {
      continue;
    }
    if (changes[i]) {
      row.corrected = corrected(*changes[i], levels[i]);
      row.verdict = verdict_of(*changes[i], levels[i]);
    }
    if (by_load(comparison, row, shift)) {
      row.verdict = Verdict::not_comparable;
      row.reason = shift == LoadShift::none ? "the load differs, and this goes with it" : "the load was another one";
    } else if (row.verdict == Verdict::cannot_tell) {
      Change wide = *changes[i];
      wide.lower = row.corrected->lower;
      wide.upper = row.corrected->upper;
      const double times = times_longer(wide, kResolution);
      row.reason = "the interval is too wide";
      row.hours_needed = row.hours_needed
                             ? *row.hours_needed
                             : std::max(comparison.hours_before, comparison.hours_after) * std::max(times, 1.0);
    }
    if (row.verdict != Verdict::cannot_tell) {
      row.hours_needed.reset();
    }
  }
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
  const bool adjust = result.load_differs && match.common >= kMinCommonShare;
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

}  // namespace ssdpulse::compare
