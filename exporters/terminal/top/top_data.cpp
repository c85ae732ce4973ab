// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/top/top_data.h"

#include <nlohmann/json.hpp>

namespace ssdpulse::top {
namespace {

using Json = nlohmann::json;

const Json& at(const Json& json, const char* key) {
  static const auto& none = *new Json();
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() ? *found : none;
}

std::optional<double> number(const Json& json) {
  return json.is_number() ? std::optional(json.get<double>()) : std::nullopt;
}

std::string text(const Json& json) { return json.is_string() ? json.get<std::string>() : ""; }

std::vector<std::string> texts(const Json& json) {
  std::vector<std::string> result;
  for (const Json& one : json.is_array() ? json : Json::array()) {
    result.push_back(text(one));
  }
  return result;
}

Tails tails_from(const Json& device, const char* kind) {
  const Json& now = at(at(device, "now"), kind);
  const double seconds = number(at(at(device, "now"), "seconds")).value_or(0);
  Tails tails;
  if (seconds > 0) {
    tails.ios_per_second = number(at(now, "ios")).value_or(0) / seconds;
    tails.bytes_per_second = number(at(now, "bytes")).value_or(0) / seconds;
  }
  tails.p50 = number(at(now, "p50"));
  tails.p99 = number(at(now, "p99"));
  tails.p999 = number(at(now, "p999"));
  tails.usual_p99 = number(at(at(device, "usual_p99"), kind));
  return tails;
}

std::string where_of(const Json& device) {
  std::string where = text(at(device, "model"));
  const auto add = [&where](const std::string& more) { where += (where.empty() || more.empty() ? "" : " ") + more; };
  for (const Json& mount : at(device, "mounts")) {
    add(text(at(mount, "mountpoint")));
  }
  for (const std::string& array : texts(at(device, "arrays"))) {
    add(array);
  }
  return where;
}

Drive drive_from(const Json& device) {
  Drive drive;
  drive.name = text(at(device, "name"));
  drive.where = where_of(device);
  drive.state = text(at(device, "state"));
  double worst = -1;
  for (const Json& spike : at(device, "spikes")) {
    if (const double excess = number(at(spike, "excess_seconds")).value_or(0); excess > worst) {
      worst = excess;
      drive.cause = text(at(spike, "operation")) + "s: " + text(at(spike, "words"));
    }
  }
  drive.spike_seconds = number(at(device, "spike_seconds")).value_or(0);
  drive.measured = at(device, "now").is_object();
  drive.read = tails_from(device, "read");
  drive.write = tails_from(device, "write");
  drive.commit = tails_from(device, "commit");
  drive.in_flight = number(at(at(device, "now"), "in_flight")).value_or(0);
  const Json& nvme = at(device, "nvme");
  drive.write_amplification = number(at(at(nvme, "write_amplification"), "ratio"));
  drive.used_ratio = number(at(nvme, "used_ratio"));
  drive.temperature = number(at(nvme, "temperature_celsius"));
  return drive;
}

std::optional<std::vector<unsigned>> levels_from(const Json& column, std::size_t words) {
  if (!column.is_string()) {
    return std::nullopt;
  }
  std::vector<unsigned> levels(words);
  const std::string packed = column.get<std::string>();
  const auto colon = packed.find(':');
  if (colon != std::string::npos && colon < 4) {
    std::size_t word = 0;
    for (const char c : packed.substr(0, colon)) {
      word = word * 10 + static_cast<std::size_t>(c >= '0' && c <= '9' ? c - '0' : 0);
    }
    for (std::size_t i = colon + 1; i < packed.size() && word < words; ++i, ++word) {
      levels[word] = packed[i] > '0' ? static_cast<unsigned>(packed[i] - '0') : 0;
    }
  }
  return levels;
}

}  // namespace

Overview overview_from(const Json& devices) {
  Overview overview;
  overview.taken_at = number(at(devices, "taken_at")).value_or(0);
  overview.verdict = text(at(at(devices, "why"), "verdict"));
  overview.sentence = text(at(at(devices, "why"), "sentence"));
  overview.next = text(at(at(devices, "why"), "next"));
  for (const Json& device : at(devices, "devices")) {
    overview.drives.push_back(drive_from(device));
  }
  return overview;
}

Seconds seconds_from(const Json& live) {
  Seconds seconds;
  seconds.device = text(at(live, "device"));
  seconds.heat = text(at(at(live, "heat"), "operation"));
  for (const Json& bound : at(live, "bounds_seconds")) {
    seconds.bounds.push_back(number(bound).value_or(0));
  }
  for (const Json& column : at(at(live, "heat"), "levels")) {
    seconds.levels.push_back(levels_from(column, seconds.bounds.size()));
  }
  for (const Json& one : at(at(live, "marks"), "spikes")) {
    Spike spike;
    spike.begin = number(at(one, "begin")).value_or(0);
    spike.end = number(at(one, "end"));
    spike.operation = text(at(one, "operation"));
    spike.words = text(at(one, "words"));
    spike.peak_seconds = number(at(one, "peak_seconds")).value_or(0);
    spike.evidence = texts(at(one, "evidence"));
    seconds.spikes.push_back(std::move(spike));
  }
  return seconds;
}

std::vector<Gap> gaps_from(const Json& status) {
  std::vector<Gap> gaps;
  for (const Json& gap : at(status, "not_measured")) {
    gaps.push_back({text(at(gap, "what")), text(at(gap, "why"))});
  }
  return gaps;
}

}  // namespace ssdpulse::top
