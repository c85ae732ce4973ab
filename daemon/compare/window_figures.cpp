// SPDX-License-Identifier: Apache-2.0
#include "daemon/compare/window_figures.h"

#include <linux/types.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "bpf/abi/latency_buckets.h"

namespace ssdpulse::compare {
namespace {

constexpr double kStepsPerOctave = 8;  // schema 3

/// Where a bucket begins, in steps above a second.
double begin_of(std::size_t bucket) {
  return static_cast<double>(bucket) - LATENCY_FIRST_NATIVE_WORD + LATENCY_FIRST_NATIVE_INDEX - 1;
}

constexpr std::size_t kMaxValues = 2000;  // of each side: see the header

std::vector<double> thinned(std::vector<double> values) {
  const std::size_t kept = std::min(values.size(), kMaxValues);
  for (std::size_t i = 0; i < kept; ++i) {
    values[i] = values[i * values.size() / kept];
  }
  values.resize(kept);
  return values;
}

using model::Latency;
using Latencies = std::vector<Latency>;

struct Quantile {
  const char* id;
  double share;
};
constexpr Quantile kQuantiles[] = {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}};

void add_quantile(std::vector<RowPlan>& rows, const std::string& id, const std::string& what, const Quantile& quantile,
                  const Latencies& histogram, bool usual) {
  rows.push_back({.id = id + "." + quantile.id,
                  .what = what + " " + quantile.id,
                  .resolution = kResolution,
                  .histogram = histogram,
                  .quantile = quantile.share,
                  .usual = usual});
}

void add_operation(std::vector<RowPlan>& rows, const std::string& id, Latency total, Latency none, Latency queue) {
  const auto at = [](Latency first, int more) { return static_cast<Latency>(static_cast<int>(first) + more); };
  const std::string what = id + "s";
  for (const Quantile& quantile : kQuantiles) {
    add_quantile(rows, id, what, quantile, {total}, true);
  }
  const int discard = static_cast<int>(model::During::discard);
  add_quantile(rows, id + ".during_discard", what + ", device time during a discard,", kQuantiles[1],
               {at(none, discard), at(none, static_cast<int>(model::During::both))}, false);
  add_quantile(rows, id + ".without_discard", what + ", device time outside discards,", kQuantiles[1],
               {none, at(none, static_cast<int>(model::During::flush))}, false);
  rows.push_back({.id = id + ".queue_share",
                  .what = what + ", share of queue",
                  .unit = Unit::share,
                  .histogram = {},
                  .numerator = {queue},
                  .denominator = {total}});
}

struct Range {
  std::size_t first = model::LatencyBuckets::size_type(-1);
  std::size_t last = 0;
};

void widen(Range& range, const Latencies& histogram, const std::vector<model::MinuteOf>& minutes) {
  for (const model::MinuteOf& minute : minutes) {
    for (const Latency latency : histogram) {
      const auto& buckets = minute.load.latency(latency).words;
      if (!buckets.empty()) {
        range.first = std::min<std::size_t>(range.first, buckets.front().first);
        range.last = std::max<std::size_t>(range.last, buckets.back().first);
      }
    }
  }
}

/// Only the buckets of a range: a tenth of all of them, and ten times as fast.
MinuteSums histogram_sums(const Latencies& histogram, const std::vector<model::MinuteOf>& minutes, const Range& range) {
  MinuteSums sums;
  sums.width = range.last - range.first + 1;
  sums.cells.resize(minutes.size() * sums.width);
  for (std::size_t i = 0; i < minutes.size(); ++i) {
    for (const Latency latency : histogram) {
      for (const auto& [bucket, count] : minutes[i].load.latency(latency).words) {
        sums.cells[i * sums.width + bucket - range.first] += static_cast<double>(count);
      }
    }
  }
  return sums;
}

double seconds_in(const Latencies& latencies, const model::DeviceInterval& load) {
  double sum = 0;
  for (const Latency latency : latencies) {
    sum += static_cast<double>(load.latency(latency).sum_ns) / 1e9;
  }
  return sum;
}

MinuteSums ratio_sums(const RowPlan& plan, const std::vector<model::MinuteOf>& minutes) {
  MinuteSums sums;
  sums.width = 2;
  for (const model::MinuteOf& minute : minutes) {
    sums.cells.push_back(seconds_in(plan.numerator, minute.load));
    sums.cells.push_back(seconds_in(plan.denominator, minute.load));
  }
  return sums;
}

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
  double used_days = 0;        // in which it rose: from the first reading that has it to the last
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
std::vector<Step> combine_steps(const std::vector<Step>& steps) {
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

double days_between(const model::PastWear& first, const model::PastWear& last, double time_scale) {
  const std::chrono::duration<double, std::ratio<86400>> stretch = last.at - first.at;
  return stretch.count() / time_scale;
}

Wear wear_of(const Side& side, double time_scale) {
  Wear wear;
  for (std::size_t i = 1; i < side.wear.size(); ++i) {
    const model::PastWear& point = side.wear[i];
    if (point.media_bytes && point.host_bytes) {
      const double days = days_between(side.wear[i - 1], point, time_scale);
      wear.steps.push_back({*point.media_bytes, *point.host_bytes, days});
      wear.sum.media_bytes += *point.media_bytes;
      wear.sum.host_bytes += *point.host_bytes;
      wear.sum.days += days;
    }
  }
  // Unlike the bytes, it is a level: that of the first point is where the window begins.
  const model::PastWear* first = nullptr;
  for (const model::PastWear& point : side.wear) {
    if (point.percentage_used) {
      first = first == nullptr ? &point : first;
      wear.used = *point.percentage_used - *first->percentage_used;
      wear.used_days = days_between(*first, point, time_scale);
    }
  }
  wear.grain = {grain_of(wear.steps, &Step::media_bytes), grain_of(wear.steps, &Step::host_bytes), 0};
  wear.steps = combine_steps(wear.steps);
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
  const double least_denominator = wear.sum.*denominator - wear.grain.*denominator;
  return {
      std::max(0.0, wear.sum.*numerator - wear.grain.*numerator) / (wear.sum.*denominator + wear.grain.*denominator),
      least_denominator > 0 ? (wear.sum.*numerator + wear.grain.*numerator) / least_denominator : HUGE_VAL};
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
  const bool wrote = row.before.value_or(0) > 0 && row.after.value_or(0) > 0;
  if (wrote && sums_before.cells == sums_after.cells) {
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
void compute_used(Row& row, const Wear& before, const Wear& after, bool compared) {
  constexpr double kGrain = 0.01;
  constexpr double kMinRise = 2 * kGrain;
  const auto per_day = [](const Wear& wear) {
    return wear.used && *wear.used >= kMinRise ? quotient(*wear.used, wear.used_days) : std::nullopt;
  };
  row.before = per_day(before);
  row.after = per_day(after);
  if (!compared) {
    return;
  }
  if (!row.before || !row.after) {
    row.verdict = Verdict::too_few;
    row.reason = "the drive's percentage used has to rise by 2 points in both windows";
    return;
  }
  const double days = before.used_days / after.used_days;
  row.raw = change_within(*row.after / *row.before, (*after.used - kGrain) / (*before.used + kGrain) * days,
                          (*after.used + kGrain) / (*before.used - kGrain) * days);
}

}  // namespace

std::optional<double> log_quantile(std::span<const double> buckets, double share, std::size_t first) {
  const double total = std::accumulate(buckets.begin(), buckets.end(), 0.0);
  double left = share * total;
  std::size_t at = 0;
  while (at < buckets.size() && buckets[at] < left) {
    left -= buckets[at];
    ++at;
  }
  const std::size_t bucket = first + at;
  if (total <= 0 || at >= buckets.size() || bucket < LATENCY_FIRST_NATIVE_WORD || bucket >= LATENCY_OVER_WORD) {
    return std::nullopt;
  }
  return (begin_of(bucket) + left / buckets[at]) / kStepsPerOctave * std::numbers::ln2;
}

double samples_above(std::span<const double> buckets, double log_seconds, std::size_t first) {
  const double steps = log_seconds / std::numbers::ln2 * kStepsPerOctave;
  double above = 0;
  for (std::size_t at = 0; at < buckets.size(); ++at) {
    above += buckets[at] * std::clamp(begin_of(first + at) + 1 - steps, 0.0, 1.0);
  }
  return above;
}

std::uint64_t samples_needed(double share) {
  return static_cast<std::uint64_t>(std::llround(static_cast<double>(kMinBeyond) / (1 - share)));
}

std::optional<double> hodges_lehmann_shift(std::vector<double> before, std::vector<double> after) {
  before = thinned(std::move(before));
  after = thinned(std::move(after));
  std::vector<double> differences;
  differences.reserve(before.size() * after.size());
  for (const double later : after) {
    for (const double earlier : before) {
      differences.push_back(later - earlier);
    }
  }
  if (differences.empty()) {
    return std::nullopt;
  }
  const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  return *middle;
}

std::vector<RowPlan> latency_rows() {
  std::vector<RowPlan> rows;
  add_operation(rows, "read", Latency::read_total, Latency::read_device_none, Latency::read_queue);
  add_operation(rows, "write", Latency::write_total, Latency::write_device_none, Latency::write_queue);
  add_quantile(rows, "flush", "flushes", kQuantiles[1], {Latency::flush}, false);
  add_quantile(rows, "commit", "commits", kQuantiles[0], {Latency::commit}, false);
  add_quantile(rows, "commit", "commits", kQuantiles[1], {Latency::commit}, false);
  return rows;
}

double samples(const RowPlan& plan, const std::vector<model::MinuteOf>& minutes) {
  double sum = 0;
  for (const model::MinuteOf& minute : minutes) {
    for (const Latency latency : plan.histogram.empty() ? plan.numerator : plan.histogram) {
      sum += static_cast<double>(minute.load.latency(latency).count());
    }
  }
  return sum;
}

Figure ratio_figure() {
  return {.log_value =
              [](Figure::Sums sums) {
                return sums[0] > 0 && sums[1] > 0 ? std::optional(std::log(sums[0] / sums[1])) : std::nullopt;
              },
          .mass = [](Figure::Sums sums, double) { return sums[0]; },
          .value_of_none = [](Figure::Sums sums) { return sums[1] > 0 ? std::optional(0.0) : std::nullopt; }};
}

Columns columns_of(const RowPlan& plan, const std::vector<model::MinuteOf>& before,
                   const std::vector<model::MinuteOf>& after, const std::vector<model::MinuteOf>& day) {
  if (plan.histogram.empty()) {
    return {ratio_sums(plan, before), ratio_sums(plan, after), ratio_sums(plan, day), ratio_figure()};
  }
  Range range;
  widen(range, plan.histogram, before);
  widen(range, plan.histogram, after);
  widen(range, plan.histogram, day);
  const auto quantile = [share = plan.quantile, first = range.first](Figure::Sums sums) {
    return log_quantile(sums, share, first);
  };
  const auto beyond = [first = range.first](Figure::Sums sums, double value) {
    return samples_above(sums, value, first);
  };
  const auto total = [](Figure::Sums sums) { return std::accumulate(sums.begin(), sums.end(), 0.0); };
  const auto sampling = [share = plan.quantile, first = range.first, total](Figure::Sums sums) {
    const double off = std::sqrt(share * (1 - share) / std::max(1.0, total(sums)));
    const auto low = log_quantile(sums, std::max(0.0, share - off), first);
    const auto high = log_quantile(sums, std::min(1.0, share + off), first);
    return low && high ? (*high - *low) * (*high - *low) / 4 : 0;
  };
  return {histogram_sums(plan.histogram, before, range),
          histogram_sums(plan.histogram, after, range),
          histogram_sums(plan.histogram, day, range),
          {.log_value = quantile, .mass = beyond, .samples = total, .sampling_variance = sampling}};
}

std::vector<double> of_each_minute(const MinuteSums& sums, const Figure& figure, double min_samples) {
  std::vector<double> result;
  for (std::size_t i = 0; i < sums.minutes(); ++i) {
    const std::span<const double> minute = sums.minute(i);
    const auto value = figure.log_value(minute);
    if (value && figure.samples(minute) >= min_samples) {
      result.push_back(*value);
    }
  }
  return result;
}

MinuteSums weighted(const MinuteSums& sums, const std::vector<double>& weights) {
  MinuteSums result;
  result.width = sums.width;
  for (std::size_t i = 0; i < sums.minutes(); ++i) {
    if (weights[i] > 0) {
      for (const double cell : sums.minute(i)) {
        result.cells.push_back(weights[i] * cell);
      }
    }
  }
  return result;
}

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
  compute_used(used, before, after, question.before.has_value());
  if (used.before || used.after) {
    rows.push_back(std::move(used));
  }
  return rows;
}

}  // namespace ssdpulse::compare
