// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "exporters/findings/findings_json.h"
#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

double floored_seconds(std::chrono::system_clock::time_point time) {
  return static_cast<double>(std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count()) / 1000;
}

std::string text_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> number_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::optional<model::Finding> finding_in(const nlohmann::json& object) {
  if (!object.is_object()) {
    return std::nullopt;
  }
  const std::string verdict = text_in(object, "verdict");
  const auto* const known = std::find(model::kVerdictNames.begin(), model::kVerdictNames.end(), verdict);
  if (known == model::kVerdictNames.end()) {
    return std::nullopt;
  }
  model::Finding one;
  one.id = text_in(object, "id");
  one.verdict = static_cast<model::Verdict>(known - model::kVerdictNames.begin());
  one.device = text_in(object, "device");
  one.title = text_in(object, "title");
  one.found = text_in(object, "found");
  one.why = text_in(object, "why");
  if (const auto evidence = object.find("evidence"); evidence != object.end() && evidence->is_object()) {
    for (const auto& [name, value] : evidence->items()) {
      if (value.is_number()) {
        one.evidence.emplace(name, value.get<double>());
      }
    }
  }
  one.change = text_in(object, "change");
  one.persistent = text_in(object, "persistent");
  one.undo = text_in(object, "undo");
  one.risk = text_in(object, "risk");
  one.source = text_in(object, "source");
  one.proof = text_in(object, "proof");
  one.excess_seconds_per_day = number_in(object, "excess_seconds_per_day");
  one.wear_bytes_per_day = number_in(object, "wear_bytes_per_day");
  one.observed_seconds = number_in(object, "observed_seconds");
  const auto* observer =
      std::find(model::kObserverNames.begin(), model::kObserverNames.end(), text_in(object, "observed_by"));
  if (observer != model::kObserverNames.end()) {
    one.observer = static_cast<model::Observer>(observer - model::kObserverNames.begin());
  }
  constexpr double kFarthest = 1e10;  // seconds; no clock shows a time beyond it
  if (const auto since = number_in(object, "since"); since && *since > -kFarthest && *since < kFarthest) {
    one.since = std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::duration<double>(*since)));
  }
  return one;
}

}  // namespace

Json findings_json(const std::vector<model::Finding>& findings) {
  Json list = Json::array();
  for (const model::Finding& one : findings) {
    Json evidence = Json::object();
    for (const auto& [name, value] : one.evidence) {
      evidence[name] = value;
    }
    list.push_back({{"id", one.id},
                    {"verdict", model::kVerdictNames[static_cast<std::size_t>(one.verdict)]},
                    {"device", util::for_json(one.device)},
                    {"title", one.title},
                    {"found", one.found},
                    {"why", one.why},
                    {"evidence", std::move(evidence)},
                    {"change", one.change},
                    {"persistent", one.persistent},
                    {"undo", one.undo},
                    {"risk", one.risk},
                    {"source", one.source},
                    {"proof", one.proof},
                    {"since", one.since ? Json(floored_seconds(*one.since)) : Json()},
                    {"excess_seconds_per_day", json_of(one.excess_seconds_per_day)},
                    {"wear_bytes_per_day", json_of(one.wear_bytes_per_day)},
                    {"observed_seconds", json_of(one.observed_seconds)},
                    {"observed_by", model::kObserverNames[static_cast<std::size_t>(one.observer)]}});
  }
  return {{"findings", std::move(list)}};
}

std::optional<std::vector<model::Finding>> findings_from(const nlohmann::json& answer) {
  const auto list = answer.find("findings");
  if (!answer.is_object() || list == answer.end() || !list->is_array()) {
    return std::nullopt;
  }
  std::vector<model::Finding> findings;
  for (const nlohmann::json& object : *list) {
    if (auto one = finding_in(object)) {
      findings.push_back(std::move(*one));
    }
  }
  return findings;
}

}  // namespace ssdpulse::page
