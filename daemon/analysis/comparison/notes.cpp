// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>

#include "daemon/analysis/comparison/figures.h"
#include "daemon/util/duration_text.h"

namespace ssdpulse::analysis::comparison {

namespace {

using model::Operation;

constexpr double kGibibyte = 1024.0 * 1024 * 1024;

void note(Comparison& comparison, const char* id, std::string text) {
  comparison.notes.push_back({id, std::move(text)});
}

/// Which settings could be the cause? A single one may be; if there are several, none can be named.
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
         std::to_string(count) + " settings differ: none of them can be named as the cause");
  } else if (count == 1) {
    note(comparison, "one-setting",
         "one known setting differs; what else was done to this host or its load at that time is not known");
  } else {
    note(comparison, "no-setting", "no known setting differs: these figures name no cause");
  }
  if (inside > 0) {
    note(comparison, "changed-inside",
         std::to_string(inside) + " settings changed inside a window: it is a mix of before and after");
  }
  note(comparison, "one-switch",
       "one switch from before to after: change it back and again (A B A B) to be sure that it was not a coincidence");
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
  const double least = std::max(kGibibyte, question.capacity_bytes.value_or(0) / 100);
  if (discarded < least || discarded < written) {
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
         "more was discarded since the first window than was written again: the drive is fresh, and what is better now "
         "may not last. Compare again when as much was written");
  }
}

void note_wear(const Question& question, Comparison& comparison) {
  const auto is_wear = [](const Row& row) { return row.id.substr(0, 5) == "wear."; };
  if (std::none_of(comparison.rows.begin(), comparison.rows.end(), is_wear)) {
    return;
  }
  note(
      comparison, "no-life",
      "the ratio of two write amplifications is not that of two lives: what wears a drive is bytes to the media a day");
  const auto seen = [&](const Side& side) { return bytes_of(side.minutes, Operation::write); };
  const double least = std::min(question.before ? seen(*question.before) : HUGE_VAL, seen(question.after));
  if (!question.capacity_bytes || least < *question.capacity_bytes) {
    note(comparison, "not-settled",
         "less than the whole drive was written in a window: write amplification may not be settled yet");
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
             " was measured; the rest is missing, and not zero");
  }
  if (std::any_of(side.minutes.begin(), side.minutes.end(),
                  [](const model::MinuteOf& minute) { return minute.length > std::chrono::minutes(1); })) {
    note(comparison, "hours-only", std::string("of ") + which + " hours are kept, not minutes: intervals are wider");
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
         "too few minutes to know how much they vary: intervals are from how far windows like these differed in the " +
             util::duration_text(measured_seconds(question.day)) + " that are kept of the day before");
  }
  if (any_from(IntervalFrom::few_minutes)) {
    note(comparison, "no-last-day",
         question.day.empty() ? "a few minutes decide some rows, and no minutes are kept of the day before the first "
                                "window, which would say how much they vary: those intervals are wide"
                              : "a few minutes decide some rows, and the day before the first window has too little "
                                "like them to say how much they vary: those intervals are wide");
  }
}

}  // namespace

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
           "the load was different: less than half of the minutes have a load that occurs in both windows");
      if (any_judged(comparison)) {
        note(comparison, comparison.load_shift == LoadShift::less ? "less-load" : "more-load",
             comparison.load_shift == LoadShift::less
                 ? "the load after was less: that makes no disk slower, so what is worse is not explained by it"
                 : "the load after was more: that makes no disk faster, so what is better is not explained by it");
      }
    } else if (comparison.load_differs) {
      note(comparison, "adjusted",
           "the load differs: changes and verdicts of latencies are for minutes weighted to the load before");
    }
    note(comparison, "this-load",
         "all of this holds for the load of these windows; a benchmark says nothing about another load");
  }
  note_wear(question, comparison);
}

}  // namespace ssdpulse::analysis::comparison
