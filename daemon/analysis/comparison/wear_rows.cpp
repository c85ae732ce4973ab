// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "daemon/analysis/comparison/figures.h"

namespace ssdpulse::analysis::comparison {

namespace {

/// What a drive wrote between two readings of its counters.
struct Step {
  double media_bytes = 0;
  double host_bytes = 0;
  double days = 0;
};

struct Wear {
  std::vector<Step> steps;
  Step sum;
  Step grain;                  // the steps in which the counters move: bytes that a sum can be off by
  std::optional<double> used;  // rise of the percentage used, 0.01 = one percent
};

/// The largest number of bytes of which all steps are multiples.
double grain_of(const std::vector<Step>& steps, double Step::*bytes) {
  std::uint64_t grain = 0;
  for (const Step& step : steps) {
    grain = std::gcd(grain, static_cast<std::uint64_t>(std::llround(std::max(0.0, step.*bytes))));
  }
  return static_cast<double>(grain);
}

/// Combines as many readings as the counter needs to move once.
std::vector<Step> put_together(const std::vector<Step>& steps) {
  const auto moved = static_cast<std::size_t>(
      std::count_if(steps.begin(), steps.end(), [](const Step& s) { return s.media_bytes > 0; }));
  const std::size_t together = moved == 0 ? 1 : (steps.size() + moved - 1) / moved;
  std::vector<Step> result;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (i % together == 0) {
      result.emplace_back();
    }
    result.back().media_bytes += steps[i].media_bytes;
    result.back().host_bytes += steps[i].host_bytes;
    result.back().days += steps[i].days;
  }
  return result;
}

Wear wear_of(const Side& side, double time_scale) {
  Wear wear;
  std::optional<double> first_used;
  for (std::size_t i = 1; i < side.wear.size(); ++i) {
    const model::PastWear& point = side.wear[i];
    if (point.media_bytes && point.host_bytes) {
      const std::chrono::duration<double, std::ratio<86400>> stretch = point.at - side.wear[i - 1].at;
      const double days = stretch.count() / time_scale;
      wear.steps.push_back({*point.media_bytes, *point.host_bytes, days});
      wear.sum.media_bytes += *point.media_bytes;
      wear.sum.host_bytes += *point.host_bytes;
      wear.sum.days += days;
    }
    if (point.percentage_used) {
      first_used = first_used.value_or(*point.percentage_used);
      wear.used = *point.percentage_used - *first_used;
    }
  }
  wear.grain = {grain_of(wear.steps, &Step::media_bytes), grain_of(wear.steps, &Step::host_bytes), 0};
  wear.steps = put_together(wear.steps);
  return wear;
}

MinuteSums sums_of(const Wear& wear, double Step::*numerator, double Step::*denominator) {
  MinuteSums sums;
  sums.width = 2;
  for (const Step& step : wear.steps) {
    sums.cells.push_back(step.*numerator);
    sums.cells.push_back(step.*denominator);
  }
  return sums;
}

struct Bounds {
  double lower = 0;
  double upper = 0;
};

Bounds bounds_of(const Wear& wear, double Step::*numerator, double Step::*denominator) {
  const double high = wear.sum.*denominator - wear.grain.*denominator;
  return {
      std::max(0.0, wear.sum.*numerator - wear.grain.*numerator) / (wear.sum.*denominator + wear.grain.*denominator),
      high > 0 ? (wear.sum.*numerator + wear.grain.*numerator) / high : HUGE_VAL};
}

/// The wider of the bounds from coarse counters and the interval from chance.
Change widened(Change change, const Bounds& before, const Bounds& after) {
  change.lower = std::min(change.lower, after.lower / before.upper);
  change.upper = std::max(change.upper, before.lower > 0 ? after.upper / before.lower : HUGE_VAL);
  if (change.lower <= 1 && change.upper >= 1) {
    change.p_value = 1;
  }
  return change;
}

constexpr double kMinPrecision = 0.05;

/// Whether counters this coarse give a ratio to within 5 % (at a write amplification of 1.5).
bool enough_bytes(const Wear& wear) {
  return wear.sum.media_bytes > 0 &&
         wear.sum.host_bytes * kMinPrecision >= wear.grain.host_bytes + wear.grain.media_bytes / 1.5;
}

void compute(Row& row, const Wear& before, const Wear& after, double Step::*denominator,
             const EstimateSettings& chance) {
  const MinuteSums sums_before = sums_of(before, &Step::media_bytes, denominator);
  const MinuteSums sums_after = sums_of(after, &Step::media_bytes, denominator);
  if (sums_before.cells == sums_after.cells) {
    row.raw = change_within(1, 1, 1);
    return;
  }
  if (!enough_bytes(before) || !enough_bytes(after)) {
    row.verdict = Verdict::too_few;
    row.reason = "too few bytes were written for counters this coarse";
    return;
  }
  const auto estimated = [&](const MinuteSums& sums, std::uint64_t seed) {
    return estimate(sums, ratio_figure(), {chance.draws, seed});
  };
  const auto earlier = estimated(sums_before, chance.seed);
  const auto later = estimated(sums_after, chance.seed + 1);
  if (!earlier || !later || earlier->longer > 1 || later->longer > 1) {
    row.verdict = Verdict::too_few;
    row.reason = "a few steps of the counters decide it";
    return;
  }
  row.raw = widened(change_between(*earlier, *later, 0), bounds_of(before, &Step::media_bytes, denominator),
                    bounds_of(after, &Step::media_bytes, denominator));
}

std::optional<double> quotient(double numerator, double denominator) {
  return denominator > 0 ? std::optional(numerator / denominator) : std::nullopt;
}

/// The drive's own figure moves in whole percents, so two windows certainly differ or not at all.
void compute_used(Row& row, const Wear& before, const Wear& after) {
  constexpr double kGrain = 0.01;
  constexpr double kMinRise = 2 * kGrain;
  const auto per_day = [](const Wear& wear) {
    return wear.used && *wear.used >= kMinRise ? quotient(*wear.used, wear.sum.days) : std::nullopt;
  };
  row.before = per_day(before);
  row.after = per_day(after);
  if (!row.before || !row.after) {
    row.verdict = Verdict::too_few;
    row.reason = "the drive's percentage used has to rise by 2 points in both windows";
    return;
  }
  const double days = before.sum.days / after.sum.days;
  row.raw = change_within(*row.after / *row.before, (*after.used - kGrain) / (*before.used + kGrain) * days,
                          (*after.used + kGrain) / (*before.used - kGrain) * days);
}

}  // namespace

std::vector<Row> wear_rows(const Question& question) {
  const Wear before = question.before ? wear_of(*question.before, question.time_scale) : Wear{};
  const Wear after = wear_of(question.after, question.time_scale);
  if (before.steps.empty() && after.steps.empty()) {
    return {};
  }
  const auto row_of = [&](const char* id, const char* what, Unit unit, double Step::*denominator) {
    Row row{.id = id, .what = what, .unit = unit};
    row.before = quotient(before.sum.media_bytes, before.sum.*denominator);
    row.after = quotient(after.sum.media_bytes, after.sum.*denominator);
    row.n_before = before.sum.host_bytes;
    row.n_after = after.sum.host_bytes;
    if (question.before) {
      compute(row, before, after, denominator, question.chance);
    }
    return row;
  };
  std::vector<Row> rows{row_of("wear.write_amplification", "write amplification", Unit::ratio, &Step::host_bytes),
                        row_of("wear.media_bytes", "bytes to the media a day", Unit::bytes_per_day, &Step::days)};
  Row used{.id = "wear.percentage_used", .what = "percentage used, a day", .unit = Unit::share};
  used.n_before = before.sum.host_bytes;
  used.n_after = after.sum.host_bytes;
  compute_used(used, before, after);
  if (used.before || used.after) {
    rows.push_back(std::move(used));
  }
  return rows;
}

}  // namespace ssdpulse::analysis::comparison
