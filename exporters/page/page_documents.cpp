// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/page_documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "daemon/model/host_signals.h"
#include "daemon/model/spike_cause.h"
#include "exporters/page/page_json.h"

namespace ssdpulse::page {
namespace {

constexpr std::string_view kDescription =
    "GET alone, but for POST /api/v1/marks?text=&id= with the header X-Ssdpulse. Times are seconds since the epoch, "
    "all else is in base units; null is what is not known, 0 what is known to be none. An answer is made once a "
    "snapshot, "
    "with an ETag (but for /api/v1/measured, which has none). A word is the number of a latency bucket: bounds_seconds "
    "of a first live answer has their upper bounds. Fields may be added; those that are here stay within v1.";

/// What is no object with fixed names: values that many fields share, and what is not made from a table.
constexpr std::string_view kOthers = R"({
  "head": {
    "type": "object",
    "required": ["run", "snapshot", "taken_at"],
    "properties": {
      "run": { "description": "Changes when the daemon was restarted: snapshots' numbers restart.", "type": "string" },
      "snapshot": { "description": "Number of the snapshot that the answer is of.", "type": "integer", "minimum": 0 },
      "taken_at": { "type": "number" }
    }
  },
  "cause": { "anyOf": [{ "$ref": "#/$defs/spike_cause" }, { "$ref": "#/$defs/host_wait_cause" }] },
  "runbook": { "description": "At /runbooks/NAME.md.", "type": ["string", "null"] },
  "words": { "type": "array", "items": { "type": ["integer", "null"], "minimum": 0, "maximum": 210 } },
  "counts": { "type": "array", "items": { "type": ["integer", "null"], "minimum": 0 } },
  "histogram": {
    "description": "Pairs of word and I/Os.",
    "type": "array",
    "items": {
      "type": "array",
      "prefixItems": [{ "type": "integer", "minimum": 0, "maximum": 210 }, { "type": "integer", "minimum": 1 }],
      "minItems": 2,
      "maxItems": 2
    }
  },
  "columns": {
    "type": "object",
    "patternProperties": {
      "^milliseconds$": { "$ref": "#/$defs/counts" },
      "^(read|write|flush|discard|commit)_ios$": { "$ref": "#/$defs/counts" },
      "^(read|write|discard)_bytes$": { "$ref": "#/$defs/counts" },
      "^(read|write)_during_(discard|flush|both)_ios$": { "$ref": "#/$defs/counts" },
      "_p(50|99|999)$": { "$ref": "#/$defs/words" },
      "^(read|write)_in_flight$": { "type": "array", "items": { "type": ["integer", "null"] } },
      "^(errors|losses|bursts)$": { "$ref": "#/$defs/counts" },
      "^spikes$": { "type": "array", "items": { "type": ["boolean", "null"] } }
    },
    "additionalProperties": false
  },
  "history_minutes": {
    "description": "/api/v1/history/DEVICE?from=&to=&minutes=1: exact histograms of at most six hours, which are the last ones without from=; hours where minutes are no longer kept. What is missing was not measured.",
    "type": "object",
    "required": ["minutes"],
    "properties": {
      "minutes": {
        "type": "array",
        "items": {
          "type": "object",
          "required": ["start", "seconds", "measured_ms"],
          "properties": {
            "start": { "type": "number" },
            "seconds": { "type": "integer", "minimum": 60 },
            "measured_ms": { "type": "integer", "minimum": 0 },
            "operations": {
              "type": "object",
              "additionalProperties": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } }
            },
            "losses": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 1 } },
            "latencies": {
              "type": "object",
              "additionalProperties": {
                "type": "object",
                "required": ["sum_ns", "words"],
                "properties": {
                  "sum_ns": { "type": "integer", "minimum": 0 },
                  "words": { "$ref": "#/$defs/histogram" }
                }
              }
            }
          }
        }
      }
    }
  },
  "measured": {
    "description": "/api/v1/measured: what the rules of `ssdpulse audit` weigh, since the daemon's start; also without the page (web.page). Unlike elsewhere, what is not known is left out, and a whole object if nothing of it is known. Names are those of /metrics: of operations, causes, triggers, classes and paths; mount points are written as in its labels.",
    "type": "object",
    "properties": {
      "observed_seconds": { "$ref": "#/$defs/figure" },
      "tenant_limits": { "type": "boolean" },
      "cgroup_limit_seconds": { "$ref": "#/$defs/figure" },
      "devices": {
        "type": "object",
        "additionalProperties": {
          "type": "object",
          "properties": {
            "unseen": { "type": "boolean" },
            "controller": { "type": "string" },
            "operations": {
              "type": "object",
              "additionalProperties": {
                "type": "object",
                "properties": { "bytes": { "$ref": "#/$defs/figure" }, "sequential_bytes": { "$ref": "#/$defs/figure" } },
                "additionalProperties": { "$ref": "#/$defs/distribution" }
              }
            },
            "commit_seconds": { "$ref": "#/$defs/distribution" },
            "written_bytes": { "$ref": "#/$defs/figures" },
            "spikes": {
              "type": "object",
              "additionalProperties": {
                "type": "object",
                "properties": {
                  "excess_seconds": { "$ref": "#/$defs/figures" },
                  "pending_excess_seconds": { "$ref": "#/$defs/figure" },
                  "active_cause": { "$ref": "#/$defs/spike_cause" }
                }
              }
            },
            "discards": { "type": "object", "additionalProperties": { "$ref": "#/$defs/figures" } },
            "path_ios": { "$ref": "#/$defs/figures" },
            "block_size_ranks": { "$ref": "#/$defs/figures" }
          },
          "additionalProperties": { "$ref": "#/$defs/figure" }
        }
      },
      "drives": {
        "type": "object",
        "additionalProperties": {
          "type": "object",
          "properties": {
            "warnings": { "$ref": "#/$defs/figures" },
            "endurance_groups": { "type": "object", "additionalProperties": { "$ref": "#/$defs/figures" } }
          },
          "additionalProperties": { "$ref": "#/$defs/figure" }
        }
      },
      "mounts": {
        "type": "object",
        "additionalProperties": {
          "type": "object",
          "properties": { "discarded_bytes": { "$ref": "#/$defs/figures" } },
          "additionalProperties": { "$ref": "#/$defs/figure" }
        }
      }
    }
  },
  "figure": { "type": "number" },
  "figures": { "type": "object", "additionalProperties": { "$ref": "#/$defs/figure" } },
  "distribution": { "description": "Of a histogram.", "type": "object", "properties": { "count": { "$ref": "#/$defs/figure" }, "sum": { "$ref": "#/$defs/figure" } } },
  "finding": {
    "description": "As ssdpulse doctor --json and ssdpulse audit --json have it.",
    "type": "object",
    "required": ["id", "verdict", "device", "title", "found", "why", "evidence", "change", "persistent", "undo", "risk", "source", "proof", "since", "excess_seconds_per_day", "wear_bytes_per_day", "observed_seconds", "observed_by"],
    "properties": {
      "id": { "type": "string", "minLength": 1 },
      "verdict": { "enum": ["danger", "advise", "unknown", "info", "ok", "not applicable"] },
      "device": { "type": "string" },
      "title": { "type": "string" },
      "found": { "type": "string", "minLength": 1 },
      "why": { "type": "string" },
      "evidence": { "type": "object", "additionalProperties": { "type": "number" } },
      "change": { "type": "string" },
      "persistent": { "type": "string" },
      "undo": { "type": "string" },
      "risk": { "type": "string" },
      "source": { "type": "string" },
      "proof": { "type": "string" },
      "since": { "type": ["number", "null"] },
      "excess_seconds_per_day": { "type": ["number", "null"] },
      "wear_bytes_per_day": { "type": ["number", "null"] },
      "observed_seconds": { "type": ["number", "null"] },
      "observed_by": { "enum": ["daemon", "history", "kernel"] }
    }
  }
})";

Json one_of_json(std::span<const std::string_view> values, bool nullable) {
  Json all = Json::array();
  for (const std::string_view value : values) {
    all.push_back(value);
  }
  if (nullable) {
    all.push_back(nullptr);
  }
  return {{"enum", std::move(all)}};
}

/// A value, or an entry of a list.
Json value_json(const Type& type, bool nullable) {
  constexpr auto kPrimitives = std::to_array<std::string_view>({"string", "number", "integer", "boolean"});
  if (!type.values.empty()) {
    return one_of_json(type.values, nullable);
  }
  if (std::find(kPrimitives.begin(), kPrimitives.end(), type.name) == kPrimitives.end()) {
    Json reference{{"$ref", fmt::format("#/$defs/{}", type.name)}};
    return nullable ? Json{{"anyOf", {std::move(reference), {{"type", "null"}}}}} : reference;
  }
  Json json{{"type", nullable ? Json{type.name, "null"} : Json(type.name)}};
  json.update(Json::parse(fmt::format("{{{}}}", type.limits)));
  return json;
}

Json type_json(const Type& type) {
  if (type.shape == Type::Shape::one) {
    return value_json(type, type.nullable);
  }
  const bool list = type.shape == Type::Shape::list;
  const std::string_view shape = list ? "array" : "object";
  Json json{{"type", type.nullable ? Json{shape, "null"} : Json(shape)}};
  json[list ? "items" : "additionalProperties"] = value_json(type, type.has_nulls);
  if (type.size > 0 || !type.empty) {
    json["minItems"] = std::max<std::size_t>(type.size, 1);
  }
  if (type.size > 0) {
    json["maxItems"] = type.size;
  }
  return json;
}

Json definition_json(const Definition& definition) {
  Json json = Json::object();
  if (!definition.help.empty()) {
    json["description"] = definition.help;
  }
  if (definition.has_head) {
    json["$ref"] = "#/$defs/head";
  }
  json["type"] = "object";
  json["required"] = Json::array();
  for (const Definition::Member& member : definition.members) {
    if (member.type.required) {
      json["required"].push_back(member.name);
    }
    Json property = Json::object();
    if (!member.help.empty()) {
      property["description"] = member.help;
    }
    property.update(type_json(member.type));
    json["properties"][std::string(member.name)] = std::move(property);
  }
  return json;
}

/// The members of an object, a line each; the text has no end of line.
template <typename Write>
std::string by_line(const Json& object, std::string_view indent, Write write) {
  std::string text = "{\n";
  for (auto member = object.begin(); member != object.end(); ++member) {
    text += fmt::format("{}  {}: {}{}\n", indent, Json(member.key()).dump(), write(member.key(), member.value()),
                        std::next(member) == object.end() ? "" : ",");
  }
  return text + std::string(indent) + "}";
}

std::string definition_text(const Json& definition) {
  return by_line(definition, "    ", [](const std::string& key, const Json& value) {
    const auto plain = [](const std::string& /*key*/, const Json& one) { return one.dump(); };
    return key == "properties" ? by_line(value, "      ", plain) : value.dump();
  });
}

/// Each once, in the order of its sentences: [TailLiftedByFlush](../runbooks/SsdpulseTailLiftedByFlush.md).
std::string links_to_runbooks(const model::SpikeCauseInfo& cause) {
  constexpr std::string_view kPrefix = "Ssdpulse";
  std::vector<std::string_view> named;
  std::string links;
  for (std::size_t i = 0; i < cause.sentences.size(); ++i) {
    const std::string_view runbook = cause.sentences[i].runbook;
    if (std::find(named.begin(), named.end(), runbook) == named.end()) {
      named.push_back(runbook);
      links +=
          fmt::format("{}[{}](../runbooks/{}.md)", links.empty() ? "" : ", ", runbook.substr(kPrefix.size()), runbook);
    }
  }
  return links;
}

}  // namespace

std::string api_schema() {
  Json all{{"spike_cause", one_of_json(model::kSpikeCauseNames, false)},
           {"host_wait_cause", one_of_json(model::kHostWaitCauseNames, false)}};
  all.update(Json::parse(kOthers));
  for (const auto& definitions :
       {mark_definitions(), device_definitions(), day_definitions(), what_if_definitions(), live_definitions(),
        history_definitions(), tenant_definitions(), stack_definitions(), status_definitions()}) {
    for (const Definition& definition : definitions) {
      all[std::string(definition.name)] = definition_json(definition);
    }
  }
  const Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                    {"$comment",
                     "SPDX-License-Identifier: Apache-2.0. Made from the tables of fields in exporters/page: "
                     "SSDPULSE_TEST_GOLDEN=write api_schema_test writes it."},
                    {"title", "Answers of ssdpulse below /api/v1"},
                    {"description", kDescription},
                    {"$defs", std::move(all)}};
  return by_line(schema, "",
                 [](const std::string& key, const Json& value) {
                   return key != "$defs" ? value.dump()
                                         : by_line(value, "  ", [](const std::string& /*key*/, const Json& one) {
                                             return one.contains("properties") ? definition_text(one) : one.dump();
                                           });
                 }) +
         "\n";
}

std::string causes_script() {
  std::string script =
      "// SPDX-License-Identifier: Apache-2.0\n"
      "// What is said of each cause of a spike. Made from daemon/model/spike_cause.h: SSDPULSE_TEST_GOLDEN=write\n"
      "// cause_documents_test writes it.\n\n"
      "export const CAUSES = {";
  for (const model::SpikeCauseInfo& cause : model::kSpikeCauseTable) {
    const nlohmann::ordered_json members{{"letter", cause.letter.view()},
                                         {"noun", cause.noun.view()},
                                         {"legend", cause.legend.view()},
                                         {"colour", cause.colour.view()}};
    script += fmt::format("{}\n  \"{}\": {}", script.back() == '{' ? "" : ",", cause.name.view(), members.dump());
  }
  return script + "\n};\n";
}

std::string spike_cause_rows() {
  std::string rows;
  for (const model::SpikeCauseInfo& cause : model::kSpikeCauseTable) {
    rows += fmt::format("| `{}` | {} | {} |\n", cause.name.view(), cause.shown_by.view(), links_to_runbooks(cause));
  }
  return rows;
}

std::string host_wait_rows() {
  std::string rows;
  for (const model::HostWaitCauseInfo& cause : model::kHostWaitCauseTable) {
    rows += fmt::format("| `{}` | {} |\n", cause.name.view(), cause.shown_by.view());
  }
  return rows;
}

}  // namespace ssdpulse::page
