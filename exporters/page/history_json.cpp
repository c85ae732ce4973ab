// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/history_json.h"

#include <fmt/format.h>

#include <array>

#include "daemon/live/evidence_words.h"
#include "daemon/live/explanations.h"
#include "daemon/live/past_spikes.h"
#include "daemon/model/tenant_title.h"
#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

using model::Latency;
using model::Operation;
using model::SparseHistogram;

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json time_json(const std::optional<model::PastTime>& time) { return time ? Json(seconds_of(*time)) : Json(); }

Json mean(const SparseHistogram& histogram) {
  return histogram.empty()
             ? Json()
             : rounded(static_cast<double>(histogram.sum_ns) / 1e9 / static_cast<double>(histogram.count()));
}

/// Bounds of the quickest and of the slowest I/O: those of the words that hold them.
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
  kind["p50"].push_back(quantile_of(total, 0.5));
  kind["p99"].push_back(quantile_of(total, 0.99));
  kind["p999"].push_back(quantile_of(total, 0.999));
}

void put_direction(Json& kind, const model::DeviceLoad& load, Operation operation) {
  const bool read = operation == Operation::read;
  put(kind, load.latency(read ? Latency::read_total : Latency::write_total));
  kind["bytes"].push_back(load.operations[index(operation)].bytes);
  kind["queue_p99"].push_back(quantile_of(load.latency(read ? Latency::read_queue : Latency::write_queue), 0.99));
  kind["device_p99"].push_back(quantile_of(load.device(operation), 0.99));
  const auto first = index(read ? Latency::read_device_none : Latency::write_device_none);
  for (std::size_t during = 0; during < model::kDurings; ++during) {
    const SparseHistogram& part = load.latencies.at(first + during);
    const std::string name = fmt::format("during_{}", model::kDuringNames.at(during));
    kind[name + "_ios"].push_back(part.count());
    kind[name + "_p99"].push_back(quantile_of(part, 0.99));
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

Json tenant_json(const model::TenantLoad& tenant) {
  Json one{{"name", util::for_json(tenant.name)}, {"title", util::for_json(model::tenant_title(tenant.name))}};
  for (const model::Operation operation : model::kAttributedOperations) {
    const auto& totals = tenant.totals[operation];
    one[std::string(name(operation))] = {
        {"ios", totals.ios}, {"bytes", totals.bytes}, {"device_seconds", static_cast<double>(totals.device_ns) / 1e9}};
  }
  return one;
}

Json past_tenants_json(const model::Series& series, bool totals) {
  Json all = Json::array();
  std::vector<model::TenantLoad> sum;
  for (std::size_t i = 0; i < series.tenants.size(); ++i) {
    if (totals) {
      model::add(sum, series.tenants[i]);
      continue;
    }
    for (const model::TenantLoad& tenant : series.tenants[i]) {
      Json one{{"point", i}};
      one.update(tenant_json(tenant));
      all.push_back(std::move(one));
    }
  }
  for (const model::TenantLoad& tenant : sum) {
    all.push_back(tenant_json(tenant));
  }
  return all;
}

const SparseHistogram& histogram_of(const model::DeviceLoad& load, model::Operation operation) {
  constexpr model::ByOperation<Latency, model::kLiveOperations> kLatencies{
      Latency::read_total, Latency::write_total, Latency::flush, Latency::discard, Latency::commit};
  return load.latency(kLatencies[operation]);
}

/// The histograms of each point's minutes added up: nothing is lost but time resolution.
Json heat_json(const model::Series& series, const std::string& name) {
  Json levels = Json::array();
  const auto operation = operation_in(name);
  for (const model::SeriesPoint& point : series.points) {
    levels.push_back(operation ? heat_text(histogram_of(point.load, *operation).words) : "");
  }
  return {{"operation", name}, {"levels", std::move(levels)}};
}

Json device_json(const model::PastDevice& device) {
  return {{"name", util::for_json(device.name)},
          {"model", util::for_json(device.model)},
          {"serial", util::for_json(device.serial)},
          {"first", seconds_of(device.first)},
          {"last", seconds_of(device.last)}};
}

Json settings_json(const std::vector<model::SettingChange>& settings) {
  Json all = Json::array();
  for (const model::SettingChange& change : settings) {
    all.push_back({{"at", seconds_of(change.at)},
                   {"device", change.device.empty() ? Json() : Json(util::for_json(change.device))},
                   {"name", util::for_json(change.name, util::kLongestSentence)},
                   {"before", change.before ? Json(util::for_json(*change.before, util::kLongestSentence)) : Json()},
                   {"value", util::for_json(change.value, util::kLongestSentence)},
                   {"clock_ahead", change.clock_ahead}});
  }
  return all;
}

Json marks_json(const std::vector<model::Mark>& marks) {
  Json all = Json::array();
  for (const model::Mark& mark : marks) {
    all.push_back(
        {{"at", seconds_of(mark.at)}, {"text", util::for_json(mark.text)}, {"clock_ahead", mark.clock_ahead}});
  }
  return all;
}

Json spikes_json(const model::Series& series) {
  std::vector<live::Burst> bursts;
  for (const model::PastBurst& burst : series.bursts) {
    bursts.push_back(live::burst_of(burst));
  }
  Json all = Json::array();
  for (const model::PastSpike& past : series.spikes) {
    const model::LatencySpike spike = live::spike_of(past);
    const auto explanation = live::explain(spike, bursts, live::Tense::past);
    const auto evidence = live::evidence_words(spike);
    all.push_back({{"begin", seconds_of(past.begin)},
                   {"seconds", past.duration_seconds},
                   {"operation", util::for_json(past.operation)},
                   {"cause", util::for_json(past.cause)},
                   {"words", util::for_json(explanation.because, util::kLongestSentence) +
                                 (past.clock_ahead ? " It was stamped by a clock that was ahead." : "")},
                   {"peak_seconds", past.peak_seconds},
                   {"baseline_seconds", past.baseline_seconds},
                   {"excess_seconds", past.excess_seconds},
                   {"ios", past.ios},
                   {"evidence", util::for_json(past.evidence, util::kLongestSentence)},
                   {"sentences", sentences_json(evidence.decided)},
                   {"ruled_out", sentences_json(evidence.ruled_out)},
                   {"other", sentences_json(evidence.other)},
                   {"missing", util::for_json(past.missing, util::kLongestSentence)},
                   {"next", explanation.next},
                   {"runbook", explanation.runbook},
                   {"has_columns", past.has_columns},
                   {"clock_ahead", past.clock_ahead}});
  }
  return all;
}

Json bursts_json(const std::vector<model::PastBurst>& bursts) {
  Json all = Json::array();
  for (const model::PastBurst& burst : bursts) {
    all.push_back({{"begin", seconds_of(burst.begin)},
                   {"seconds", burst.duration_seconds},
                   {"trigger", util::for_json(burst.trigger)},
                   {"bytes", burst.bytes},
                   {"clock_ahead", burst.clock_ahead}});
  }
  return all;
}

/// Volumes and disks have their kernel's names: how they were called then is not kept.
Json waits_json(const std::vector<model::PastWait>& waits) {
  Json all = Json::array();
  for (const model::PastWait& past : waits) {
    if (const auto wait = live::wait_of(past)) {
      all.push_back(wait_mark_json(*wait, {}));
      all.back()["clock_ahead"] = past.clock_ahead;
    }
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
                   {"source", util::for_json(one.source)},
                   {"host_unit_bytes", one.host_unit_bytes > 0 ? Json(one.host_unit_bytes) : Json()},
                   {"media_unit_bytes", one.media_unit_bytes > 0 ? Json(one.media_unit_bytes) : Json()}});
  }
  return all;
}

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string history_json(const model::Series& series, const HistoryWish& wish) {
  Json answer{{"device", device_json(series.device)},
              {"from", seconds_of(series.window.from)},
              {"to", seconds_of(series.window.to)},
              {"step_seconds", std::chrono::seconds(series.step).count()},
              {"reach", {{"minutes", time_json(series.reach.minutes)}, {"hours", time_json(series.reach.hours)}}}};
  answer["points"] = points_json(series);
  if (!wish.heat.empty()) {
    answer["heat"] = heat_json(series, wish.heat);
    answer["bounds_seconds"] = bounds_json();
  }
  answer["tenants"] = past_tenants_json(series, wish.tenant_totals);
  answer["wear"] = wear_json(series.wear);
  answer["spikes"] = spikes_json(series);
  answer["bursts"] = bursts_json(series.bursts);
  answer["waits"] = waits_json(series.waits);
  answer["settings"] = settings_json(series.settings);
  answer["marks"] = marks_json(series.marks);
  answer["clock_ahead"] = Json::array();
  for (const model::Window& window : series.clock_ahead) {
    answer["clock_ahead"].push_back({{"from", seconds_of(window.from)}, {"to", seconds_of(window.to)}});
  }
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

bool is_heat(const std::string& name) { return !name.empty() && operation_in(name).has_value(); }

bool is_printable(const std::string& words) {
  constexpr std::size_t kMaxCharacters = 128;  // characters, as many as util::for_json() keeps
  return !words.empty() && words.size() <= 4 * kMaxCharacters && util::for_json(words) == words;
}

}  // namespace ssdpulse::page
