// SPDX-License-Identifier: Apache-2.0
#include "daemon/compare/load_classes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "daemon/compare/window_figures.h"

namespace ssdpulse::compare {
namespace {

using model::Latency;
using model::MinuteOf;
using model::Operation;
using Minutes = std::vector<MinuteOf>;

using Class = std::array<std::size_t, 2>;
constexpr double kMaxClasses = 5;
constexpr double kMinClassRatio = 1.5;
constexpr double kIdleRate = 65536;  // bytes per second

/// Classes of equal width in logarithms, starting at the lowest rate.
struct Scale {
  double begin = 0;  // logarithm, like `width`
  double width = 1;
};
using Scales = std::array<Scale, 2>;

double level(double rate) { return std::log(std::max(rate, kIdleRate)); }

Scale scale_of(const std::vector<double>& rates) {
  const auto [lowest, highest] = std::minmax_element(rates.begin(), rates.end());
  return {level(*lowest), std::max(std::log(kMinClassRatio), (level(*highest) - level(*lowest)) / kMaxClasses)};
}

Class class_of(const Rates& rates, const Scales& scales) {
  Class result{};
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<std::size_t>((level(rates[i]) - scales[i].begin) / scales[i].width);
  }
  return result;
}

std::map<Class, double> shares_of(const std::vector<Rates>& minutes, const Scales& scales) {
  std::map<Class, double> shares;
  for (const Rates& rates : minutes) {
    shares[class_of(rates, scales)] += 1.0 / static_cast<double>(minutes.size());
  }
  return shares;
}

template <typename Part>
double sum_of(const Minutes& minutes, Part part) {
  double sum = 0;
  for (const MinuteOf& minute : minutes) {
    sum += static_cast<double>(part(minute.load));
  }
  return sum;
}

std::optional<double> ratio(double numerator, double denominator) {
  return denominator > 0 ? std::optional(numerator / denominator) : std::nullopt;
}

double ios_of(const Minutes& minutes, Operation operation) {
  return sum_of(minutes, [&](const model::DeviceInterval& load) { return load.operations[index(operation)].ios; });
}

double in_flight_seconds(const Minutes& minutes, Latency total) {
  return sum_of(minutes, [&](const model::DeviceInterval& load) { return load.latency(total).sum_ns; }) / 1e9;
}

std::optional<double> temperature(const Side& side) {
  double sum = 0;
  double count = 0;
  for (const model::PastWear& wear : side.wear) {
    sum += wear.temperature_celsius.value_or(0);
    count += wear.temperature_celsius ? 1 : 0;
  }
  return ratio(sum, count);
}

using Value = std::function<std::optional<double>(const Side&)>;

struct Planned {
  const char* id;
  const char* what;
  Unit unit;
  Value value;
};

Value per_second(double (*total)(const Minutes&, Operation), Operation operation) {
  return [=](const Side& side) { return ratio(total(side.minutes, operation), measured_seconds(side.minutes)); };
}

Value mean_size(Operation operation) {
  return [=](const Side& side) { return ratio(bytes_of(side.minutes, operation), ios_of(side.minutes, operation)); };
}

Value sequential(Operation operation) {
  return [=](const Side& side) {
    return ratio(
        sum_of(side.minutes,
               [&](const model::DeviceInterval& load) { return load.operations[index(operation)].sequential_bytes; }),
        bytes_of(side.minutes, operation));
  };
}

/// Little's law: the total time of all I/Os divided by the time that passed.
Value depth(Latency total) {
  return
      [=](const Side& side) { return ratio(in_flight_seconds(side.minutes, total), measured_seconds(side.minutes)); };
}

/// Every row of the load, in the order of the table.
std::vector<Planned> plans() {
  return {
      {"read.ios", "reads", Unit::per_second, per_second(ios_of, Operation::read)},
      {"write.ios", "writes", Unit::per_second, per_second(ios_of, Operation::write)},
      {"read.bytes", "read", Unit::bytes_per_second, per_second(bytes_of, Operation::read)},
      {"write.bytes", "written", Unit::bytes_per_second, per_second(bytes_of, Operation::write)},
      {"read.size", "size of a read, mean", Unit::bytes, mean_size(Operation::read)},
      {"write.size", "size of a write, mean", Unit::bytes, mean_size(Operation::write)},
      {"read.sequential", "sequential bytes of reads", Unit::share, sequential(Operation::read)},
      {"write.sequential", "sequential bytes of writes", Unit::share, sequential(Operation::write)},
      {"read.depth", "reads at once, mean", Unit::count, depth(Latency::read_total)},
      {"write.depth", "writes at once, mean", Unit::count, depth(Latency::write_total)},
      {"flush.ios", "flushes", Unit::per_second, per_second(ios_of, Operation::flush)},
      {"discard.bytes", "discarded", Unit::bytes_per_second, per_second(bytes_of, Operation::discard)},
      {"temperature", "temperature, mean", Unit::celsius, temperature},
  };
}

}  // namespace

LoadMatch match_load(const std::vector<Rates>& before, const std::vector<Rates>& after) {
  LoadMatch result;
  if (before.empty() || after.empty()) {
    return result;
  }
  Scales scales;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    std::vector<double> rates;
    for (const auto* window : {&before, &after}) {
      for (const Rates& minute : *window) {
        rates.push_back(minute[i]);
      }
    }
    scales[i] = scale_of(rates);
  }
  const auto shares_before = shares_of(before, scales);
  const auto shares_after = shares_of(after, scales);
  double common_before = 0;
  double common_after = 0;
  for (const auto& [load, share] : shares_before) {
    if (const auto found = shares_after.find(load); found != shares_after.end()) {
      common_before += share;
      common_after += found->second;
    }
  }
  result.common = std::min(common_before, common_after);
  for (const Rates& minute : before) {
    result.before.push_back(shares_after.contains(class_of(minute, scales)) ? 1 : 0);
  }
  for (const Rates& minute : after) {
    const Class load = class_of(minute, scales);
    const auto found = shares_before.find(load);
    result.after.push_back(found == shares_before.end() ? 0 : found->second / shares_after.at(load));
  }
  return result;
}

double measured_seconds(const Minutes& minutes) {
  return sum_of(minutes, [](const model::DeviceInterval& load) { return load.measured_ms; }) / 1000;
}

double bytes_of(const Minutes& minutes, Operation operation) {
  return sum_of(minutes, [&](const model::DeviceInterval& load) { return load.operations[index(operation)].bytes; });
}

std::vector<Rates> rates_of(const Minutes& minutes) {
  std::vector<Rates> rates;
  for (const MinuteOf& minute : minutes) {
    const double seconds = static_cast<double>(minute.load.measured_ms) / 1000;
    const auto rate = [&](Operation operation) {
      return seconds > 0 ? static_cast<double>(minute.load.operations[index(operation)].bytes) / seconds : 0;
    };
    rates.push_back({rate(Operation::read), rate(Operation::write)});
  }
  return rates;
}

std::vector<LoadRow> load_rows(const Question& question) {
  std::vector<LoadRow> rows;
  for (const Planned& plan : plans()) {
    LoadRow row{.id = plan.id, .what = plan.what, .unit = plan.unit, .after = plan.value(question.after)};
    if (question.before) {
      row.before = plan.value(*question.before);
    }
    if (row.before || row.after) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace ssdpulse::compare
