// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/comparison/figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "daemon/analysis/comparison/latency_quantile.h"

namespace ssdpulse::analysis::comparison {

namespace {

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
  add_quantile(rows, id + ".during_discard", what + " during a discard", kQuantiles[1],
               {at(none, discard), at(none, static_cast<int>(model::During::both))}, false);
  add_quantile(rows, id + ".without_discard", what + " outside discards", kQuantiles[1],
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
      const auto& words = minute.load.latency(latency).words;
      if (!words.empty()) {
        range.first = std::min<std::size_t>(range.first, words.front().first);
        range.last = std::max<std::size_t>(range.last, words.back().first);
      }
    }
  }
}

/// Only the words of a range: a tenth of all of them, and ten times as fast.
MinuteSums histogram_sums(const Latencies& histogram, const std::vector<model::MinuteOf>& minutes, const Range& range) {
  MinuteSums sums;
  sums.width = range.last - range.first + 1;
  sums.cells.resize(minutes.size() * sums.width);
  for (std::size_t i = 0; i < minutes.size(); ++i) {
    for (const Latency latency : histogram) {
      for (const auto& [word, count] : minutes[i].load.latency(latency).words) {
        sums.cells[i * sums.width + word - range.first] += static_cast<double>(count);
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

}  // namespace

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
  if (range.first > range.last) {
    return {};
  }
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

std::vector<double> of_each_minute(const MinuteSums& sums, const Figure& figure, double least_samples) {
  std::vector<double> result;
  for (std::size_t i = 0; i < sums.minutes(); ++i) {
    const std::span<const double> minute = sums.minute(i);
    const auto value = figure.log_value(minute);
    if (value && std::accumulate(minute.begin(), minute.end(), 0.0) >= least_samples) {
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

}  // namespace ssdpulse::analysis::comparison
