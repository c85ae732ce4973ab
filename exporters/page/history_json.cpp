// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/history_json.h"

#include <fmt/format.h>

#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

using model::Latency;
using model::Operation;
using model::SparseHistogram;

/// Four digits: words are 9 % apart.
Json rounded(double seconds) { return std::stod(fmt::format("{:.4g}", seconds)); }

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json time_json(const std::optional<model::PastTime>& time) { return time ? Json(seconds_of(*time)) : Json(); }

Json quantile(const SparseHistogram& histogram, double share) {
  return histogram.empty() ? Json()
                           : latency_of(static_cast<std::uint8_t>(model::quantile_word(histogram.dense(), share)));
}

Json mean(const SparseHistogram& histogram) {
  return histogram.empty()
             ? Json()
             : rounded(static_cast<double>(histogram.sum_ns) / 1e9 / static_cast<double>(histogram.count()));
}

/// Bounds of the quickest and of the slowest: the words in which they are.
Json least(const SparseHistogram& histogram) {
  const std::uint8_t word = histogram.empty() ? std::uint8_t{0} : histogram.words.front().first;
  return histogram.empty() ? Json() : word == 0 ? Json(0.0) : latency_of(static_cast<std::uint8_t>(word - 1));
}

Json most(const SparseHistogram& histogram) {
  return histogram.empty() ? Json() : latency_of(histogram.words.back().first);
}

void put(Json& kind, const SparseHistogram& total) {
  kind["ios"].push_back(total.count());
  kind["min"].push_back(least(total));
  kind["mean"].push_back(mean(total));
  kind["max"].push_back(most(total));
  kind["p50"].push_back(quantile(total, 0.5));
  kind["p99"].push_back(quantile(total, 0.99));
  kind["p999"].push_back(quantile(total, 0.999));
}

void put_direction(Json& kind, const model::DeviceLoad& load, Operation operation) {
  const bool read = operation == Operation::read;
  put(kind, load.latency(read ? Latency::read_total : Latency::write_total));
  kind["bytes"].push_back(load.operations[index(operation)].bytes);
  kind["queue_p99"].push_back(quantile(load.latency(read ? Latency::read_queue : Latency::write_queue), 0.99));
  kind["device_p99"].push_back(quantile(load.device(operation), 0.99));
  const auto first = index(read ? Latency::read_device_none : Latency::write_device_none);
  for (std::size_t during = 0; during < model::kDurings; ++during) {
    const SparseHistogram& beside = load.latencies.at(first + during);
    const std::string name = fmt::format("beside_{}", model::kDuringNames.at(during));
    kind[name + "_ios"].push_back(beside.count());
    kind[name + "_p99"].push_back(quantile(beside, 0.99));
  }
}

Json points_json(const model::Series& series) {
  Json points;
  points["start"] = Json::array();
  for (const model::SeriesPoint& point : series.points) {
    const model::DeviceLoad& load = point.load;
    points["start"].push_back(seconds_of(point.start));
    points["measured_seconds"].push_back(static_cast<double>(load.measured_ms) / 1000);
    put_direction(points["read"], load, Operation::read);
    put_direction(points["write"], load, Operation::write);
    put(points["flush"], load.latency(Latency::flush));
    put(points["commit"], load.latency(Latency::commit));
    put(points["discard"], load.latency(Latency::discard));
    points["discard"]["bytes"].push_back(load.operations[index(Operation::discard)].bytes);
    std::uint64_t errors = 0;
    for (const model::OperationLoad& operation : load.operations) {
      errors += operation.errors;
    }
    std::uint64_t losses = 0;
    for (const std::uint64_t lost : load.losses) {
      losses += lost;
    }
    points["errors"].push_back(errors);
    points["losses"].push_back(losses);
  }
  return points;
}

Json tenants_json(const model::Series& series) {
  Json all = Json::array();
  for (std::size_t i = 0; i < series.tenants.size(); ++i) {
    for (const model::TenantLoad& tenant : series.tenants[i]) {
      Json one{{"point", i}, {"name", text(tenant.name)}};
      for (std::size_t k = 0; k < model::kAttributedOperations; ++k) {
        const auto& totals = tenant.totals.at(k);
        one[std::string(model::kAttributedOperationNames.at(k))] = {
            {"ios", totals.ios},
            {"bytes", totals.bytes},
            {"device_seconds", static_cast<double>(totals.device_ns) / 1e9}};
      }
      all.push_back(std::move(one));
    }
  }
  return all;
}

Json device_json(const model::PastDevice& device) {
  return {{"name", text(device.name)},
          {"model", text(device.model)},
          {"serial", text(device.serial)},
          {"first", seconds_of(device.first)},
          {"last", seconds_of(device.last)}};
}

Json settings_json(const std::vector<model::SettingChange>& settings) {
  Json all = Json::array();
  for (const model::SettingChange& change : settings) {
    all.push_back({{"at", seconds_of(change.at)},
                   {"device", change.device.empty() ? Json() : Json(text(change.device))},
                   {"name", text(change.name)},
                   {"before", change.before ? Json(text(*change.before)) : Json()},
                   {"value", text(change.value)}});
  }
  return all;
}

Json marks_json(const std::vector<model::Mark>& marks) {
  Json all = Json::array();
  for (const model::Mark& mark : marks) {
    all.push_back({{"at", seconds_of(mark.at)}, {"text", text(mark.text)}});
  }
  return all;
}

Json spikes_json(const std::vector<model::PastSpike>& spikes) {
  Json all = Json::array();
  for (const model::PastSpike& spike : spikes) {
    all.push_back({{"begin", seconds_of(spike.begin)},
                   {"seconds", spike.duration_seconds},
                   {"operation", text(spike.operation)},
                   {"cause", text(spike.cause)},
                   {"peak_seconds", spike.peak_seconds},
                   {"usual_seconds", spike.baseline_seconds},
                   {"ios", spike.ios},
                   {"excess_seconds", number(spike.excess_seconds)},
                   {"evidence", text(spike.evidence)},
                   {"missing", text(spike.missing)},
                   {"has_columns", spike.has_columns}});
  }
  return all;
}

Json bursts_json(const std::vector<model::PastBurst>& bursts) {
  Json all = Json::array();
  for (const model::PastBurst& burst : bursts) {
    all.push_back({{"begin", seconds_of(burst.begin)},
                   {"seconds", burst.duration_seconds},
                   {"trigger", text(burst.trigger)},
                   {"bytes", burst.bytes}});
  }
  return all;
}

Json wear_json(const std::vector<model::PastWear>& wear) {
  Json all = Json::array();
  for (const model::PastWear& one : wear) {
    all.push_back({{"at", seconds_of(one.at)},
                   {"percentage_used", number(one.percentage_used)},
                   {"available_spare", number(one.available_spare)},
                   {"temperature_celsius", number(one.temperature_celsius)},
                   {"host_bytes", number(one.host_bytes)},
                   {"media_bytes", number(one.media_bytes)},
                   {"source", text(one.source)}});
  }
  return all;
}

Json quantiles_json(const std::vector<model::PastQuantiles>& quantiles) {
  Json all = Json::array();
  for (const model::PastQuantiles& one : quantiles) {
    all.push_back({{"at", seconds_of(one.at)},
                   {"read_p50_seconds", number(one.read_p50_seconds)},
                   {"read_p99_seconds", number(one.read_p99_seconds)},
                   {"write_p50_seconds", number(one.write_p50_seconds)},
                   {"write_p99_seconds", number(one.write_p99_seconds)}});
  }
  return all;
}

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string history_json(const model::Series& series) {
  Json answer{{"device", device_json(series.device)},
              {"from", seconds_of(series.window.from)},
              {"to", seconds_of(series.window.to)},
              {"step_seconds", std::chrono::seconds(series.step).count()},
              {"reach",
               {{"minutes", time_json(series.reach.minutes)},
                {"hours", time_json(series.reach.hours)},
                {"quantiles", time_json(series.reach.quantiles)}}}};
  answer["points"] = points_json(series);
  answer["tenants"] = tenants_json(series);
  answer["wear"] = wear_json(series.wear);
  answer["quantiles"] = quantiles_json(series.quantiles);
  answer["spikes"] = spikes_json(series.spikes);
  answer["bursts"] = bursts_json(series.bursts);
  answer["settings"] = settings_json(series.settings);
  answer["marks"] = marks_json(series.marks);
  answer["cut"] = series.cut;
  return dumped(answer);
}

void MinutesJson::add(const model::MinuteOf& minute) {
  Json one{{"start", seconds_of(minute.start)},
           {"seconds", std::chrono::seconds(minute.length).count()},
           {"measured_ms", minute.load.measured_ms}};
  for (std::size_t i = 0; i < model::kOperations; ++i) {
    const model::OperationLoad& load = minute.load.operations.at(i);
    if (load != model::OperationLoad{}) {
      one["operations"][std::string(model::kOperationNames.at(i))] = {{"ios", load.ios},
                                                                      {"bytes", load.bytes},
                                                                      {"sequential_bytes", load.sequential_bytes},
                                                                      {"queue_full_ns", load.queue_full_ns},
                                                                      {"errors", load.errors}};
    }
  }
  for (std::size_t i = 0; i < model::kLosses; ++i) {
    if (minute.load.losses.at(i) > 0) {
      one["losses"][std::string(model::kLossNames.at(i))] = minute.load.losses.at(i);
    }
  }
  for (std::size_t i = 0; i < model::kLatencies; ++i) {
    const SparseHistogram& histogram = minute.load.latencies.at(i);
    if (!histogram.empty()) {
      Json words = Json::array();
      for (const auto& [word, ios] : histogram.words) {
        words.push_back({word, ios});
      }
      one["latencies"][std::string(model::kLatencyNames.at(i))] = {{"sum_ns", histogram.sum_ns},
                                                                   {"words", std::move(words)}};
    }
  }
  text_ += (any_ ? "," : "") + dumped(one);
  any_ = true;
}

std::string MinutesJson::take() { return std::move(text_) + "]}"; }

std::string history_list_json(const std::vector<model::PastDevice>& devices,
                              const std::vector<model::SettingChange>& settings,
                              const std::vector<model::Mark>& marks) {
  Json answer{{"devices", Json::array()}};
  for (const model::PastDevice& device : devices) {
    answer["devices"].push_back(device_json(device));
  }
  answer["settings"] = settings_json(settings);
  answer["marks"] = marks_json(marks);
  return dumped(answer);
}

bool is_printable(const std::string& words) {
  constexpr std::size_t kMost = 128;  // characters, as text() keeps
  return !words.empty() && words.size() <= 4 * kMost && text(words) == words;
}

}  // namespace ssdpulse::page
