// SPDX-License-Identifier: Apache-2.0
// The JSON of a report. Times are seconds since the epoch; all else is in base units, changes are ratios after /
// before. Unknown values are null.
#include <cmath>
#include <nlohmann/json.hpp>

#include "daemon/base/complete.h"
#include "daemon/model/block_io.h"  // name()
#include "exporters/report/report_forms.h"

namespace ssdpulse::report {
namespace {

using Json = nlohmann::ordered_json;

Json optional(const std::optional<double>& value) { return value && std::isfinite(*value) ? Json(*value) : Json(); }

Json seconds(model::WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

Json window_json(const model::Window& window) { return {{"from", seconds(window.from)}, {"to", seconds(window.to)}}; }

Json change_json(const std::optional<Change>& change) {
  return change ? Json{{"ratio", optional(change->ratio)},
                       {"lower", optional(change->lower)},
                       {"upper", optional(change->upper)},
                       {"p", change->p_value}}
                : Json();
}

Json interval_json(const std::optional<compare::Interval>& interval) {
  return interval ? Json{{"lower", optional(interval->lower)}, {"upper", optional(interval->upper)}} : Json();
}

constexpr auto kIntervalFromNames = util::names<compare::IntervalFrom>({"windows", "last day", "few minutes"});
constexpr auto kUnitNames = util::names<Unit>(
    {"seconds", "share", "ratio", "bytes/day", "1/second", "bytes/second", "bytes", "count", "celsius"});

Json row_json(const Row& row, bool compared) {
  Json json{{"id", row.id}, {"unit", model::name(row.unit, kUnitNames)}};
  if (compared) {
    json["before"] = optional(row.before);
    json["n_before"] = row.n_before;
  }
  json["after"] = optional(row.after);
  json["n_after"] = row.n_after;
  json["n_needed"] = row.n_needed;
  if (compared) {
    json["change"] = change_json(row.raw);
    json["adjusted_change"] = change_json(row.adjusted);
    json["corrected_interval"] = interval_json(row.corrected);
    json["interval_from"] = row.answer() ? Json(model::name(row.from, kIntervalFromNames)) : Json();
    json["median_minute_ratio"] = optional(row.usual);
    json["verdict"] = std::string(name(row.verdict.value_or(compare::Verdict::cannot_tell)));
    json["hours_needed"] = optional(row.hours_needed);
  }
  json["reason"] = row.reason.empty() ? Json() : Json(row.reason);
  return json;
}

Json load_json(const LoadRow& row, bool compared) {
  Json json{{"id", row.id}, {"unit", model::name(row.unit, kUnitNames)}};
  if (compared) {
    json["before"] = optional(row.before);
  }
  json["after"] = optional(row.after);
  return json;
}

Json device_json(const Comparison& comparison) {
  const bool compared = comparison.before.has_value();
  Json json{{"device", util::for_json(comparison.device.name)},
            {"model", util::for_json(comparison.device.model)},
            {"serial", util::for_json(comparison.device.serial)},
            {"before", compared ? window_json(*comparison.before) : Json()},
            {"after", window_json(comparison.after)},
            {"hours_before", compared ? Json(comparison.hours_before) : Json()},
            {"hours_after", comparison.hours_after},
            {"common_load_share", compared ? Json(comparison.common_load) : Json()},
            {"rows", Json::array()},
            {"load", Json::array()},
            {"settings", Json::array()},
            {"notes", Json::array()}};
  for (const Row& row : comparison.rows) {
    json["rows"].push_back(row_json(row, compared));
  }
  for (const LoadRow& row : comparison.load) {
    json["load"].push_back(load_json(row, compared));
  }
  for (const model::SettingChange& change : comparison.differing) {
    json["settings"].push_back({{"at", seconds(change.at)},
                                {"device", util::for_json(change.device)},
                                {"name", util::for_json(change.name)},
                                {"before", change.before ? Json(util::for_json(*change.before)) : Json()},
                                {"after", util::for_json(change.value)}});
  }
  for (const auto& note : comparison.notes) {
    json["notes"].push_back({{"id", note.id}, {"text", note.text}});
  }
  return json;
}

}  // namespace

void print_json(const Report& report, std::ostream& out) {
  Json json{{"host", util::for_json(report.host)},
            {"made_at", seconds(report.made_at)},
            {"change", report.change.empty() ? Json() : Json(util::for_json(report.change))},
            {"answer", Json::array()},
            {"marks", Json::array()},
            {"devices", Json::array()}};
  for (const std::string& sentence : answer_of(report)) {
    json["answer"].push_back(util::for_json(sentence, util::kLongestSentence));
  }
  for (const model::Mark& mark : report.marks) {
    json["marks"].push_back({{"at", seconds(mark.at)}, {"text", util::for_json(mark.text)}});
  }
  for (const DeviceReport& device : report.devices) {
    json["devices"].push_back(device_json(device.comparison));
    if (device.during) {
      json["devices"].back()["during"] = device_json(device.during->comparison);
    }
  }
  if (report.ladder_after) {
    json["ladder"] = Json::parse(ladder_json(report));
  }
  out << json.dump(2) << '\n';
}

}  // namespace ssdpulse::report
