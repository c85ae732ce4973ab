// SPDX-License-Identifier: Apache-2.0
// Object: one JSON object of the API as a table with an entry for each field. Both the answers and api.schema.json are
// made from it, so neither can have a field that the other lacks. Only for the files of this folder. Also the values
// that several answers share, and the answers of /api/v1 themselves.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/advice/doctor.h"
#include "daemon/base/outside_text.h"
#include "daemon/flash/flash_what_if.h"
#include "daemon/history/recent_past.h"
#include "daemon/model/device_interval.h"
#include "daemon/model/history_answers.h"
#include "daemon/model/snapshot.h"
#include "daemon/spikes/spike_words.h"
#include "daemon/spikes/why.h"

namespace ssdpulse::page {

using Json = nlohmann::ordered_json;

/// What the schema says of a value.
struct Type {
  enum class Shape : std::uint8_t { one, list, map };  // map: an object whose names are data

  std::string_view name;                          // of JSON Schema ("number"), or of a definition ("spike")
  std::string_view limits = {};                   // the rest of it, in JSON Schema's words: "minimum": 0
  std::span<const std::string_view> values = {};  // the only ones; empty: any
  Shape shape = Shape::one;
  std::size_t size = 0;    // of a list; 0: any
  bool empty = true;       // whether a list may be
  bool nullable = false;   // the value, or the list as a whole
  bool has_nulls = false;  // the list's or map's entries may be null
  bool required = true;    // false: the field may be absent
};

/// As the schema's definition of that name says: an object, mostly.
constexpr Type defined_as(std::string_view definition) { return {definition}; }
constexpr Type or_null(Type type) {
  type.nullable = true;
  return type;
}
constexpr Type may_be_absent(Type type) {
  type.required = false;
  return type;
}
constexpr Type one_of(std::span<const std::string_view> values) { return {.name = "string", .values = values}; }
constexpr Type list_of(Type type, std::size_t size = 0) {
  type.shape = Type::Shape::list;
  type.size = size;
  type.has_nulls = type.nullable;
  type.nullable = false;
  return type;
}
constexpr Type some_of(Type type) {
  type = list_of(type);
  type.empty = false;
  return type;
}
constexpr Type map_of(Type type) {
  type.shape = Type::Shape::map;
  type.has_nulls = type.nullable;
  type.nullable = false;
  return type;
}

inline constexpr Type kText{"string"};
inline constexpr Type kSentence{.name = "string", .limits = R"("minLength": 1)"};
inline constexpr Type kNumber{"number"};
inline constexpr Type kSeconds{.name = "number", .limits = R"("minimum": 0)"};
inline constexpr Type kRatio{.name = "number", .limits = R"("minimum": 0, "maximum": 1)"};
inline constexpr Type kInteger{"integer"};
inline constexpr Type kCount{.name = "integer", .limits = R"("minimum": 0)"};
inline constexpr Type kFlag{"boolean"};

/// Times are seconds since the epoch, to the millisecond.
double seconds_of(model::WallTime time);
/// The head of every answer: the run of the daemon, and the number and time of its snapshot.
Json head_of(const model::Snapshot& snapshot);

/// The value of a field that may be absent, when it is.
inline Json absent() { return Json(Json::value_t::discarded); }

/// Null for what is not known.
template <typename Value>
Json json_of(Value value) {
  return Json(std::move(value));
}
template <typename Value>
Json json_of(std::optional<Value> value) {
  return value ? Json(std::move(*value)) : Json();
}

/// What a field shows of a member of what its object is made from: the member itself, or as a text that did not come
/// from ssdpulse, or as a time.
template <auto Member>
inline constexpr auto member_of = [](const auto& from) { return from.*Member; };
template <auto Member>
inline constexpr auto text_of = [](const auto& from) { return util::for_json(from.*Member); };
template <auto Member>
inline constexpr auto sentence_of =
    [](const auto& from) { return util::for_json(from.*Member, util::kLongestSentence); };
template <auto Member>
inline constexpr auto time_of = [](const auto& from) { return seconds_of(from.*Member); };

/// `From`: what the object is made from.
template <typename From>
struct Field {
  /// `get`: a lambda without captures that returns the value. `help`: what the name does not say.
  template <typename Get>
  // NOLINTNEXTLINE(google-explicit-constructor): an entry of a table
  constexpr Field(std::string_view field, Type of, Get /*get*/, std::string_view text = "")
      : name(field), type(of), value([](const From& from) -> Json { return json_of(Get{}(from)); }), help(text) {}

  std::string_view name;
  Type type;
  Json (*value)(const From&);
  std::string_view help;
};

/// What the schema says of an object.
struct Definition {
  struct Member {
    std::string_view name;
    Type type;
    std::string_view help;
  };
  std::string_view name;
  std::string_view help;
  bool has_head;  // begins with what head_of() says
  std::vector<Member> members;
};
using Definitions = std::vector<Definition>;

enum class Head : std::uint8_t { none, snapshot };
enum class Layout : std::uint8_t { values, arrays };

template <typename From>
struct Object {
  std::string_view name;  // of its definition in the schema
  std::string_view help;
  std::span<const Field<From>> fields;
  Head head = Head::none;
  Layout layout = Layout::values;  // arrays: made by arrays()

  [[nodiscard]] Json operator()(const From& from) const {
    Json json = Json::object();
    append_to(json, from);
    return json;
  }
  /// The whole answer to a request: the head, and the fields.
  [[nodiscard]] Json answer(const model::Snapshot& snapshot, const From& from) const {
    Json json = head_of(snapshot);
    append_to(json, from);
    return json;
  }
  /// Each field as an array with an entry for each of `all`, for series: neighbours in time are alike and compress
  /// well.
  template <typename List>
  [[nodiscard]] Json arrays(const List& all) const {
    Json json = Json::object();
    for (const Field<From>& field : fields) {
      for (const From& from : all) {
        if (Json value = field.value(from); !value.is_discarded()) {
          json[std::string(field.name)].push_back(std::move(value));
        }
      }
    }
    return json;
  }
  template <typename List>
  [[nodiscard]] Json list(const List& all) const {
    Json json = Json::array();
    for (const From& from : all) {
      json.push_back((*this)(from));
    }
    return json;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): an entry in a list of definitions
  operator Definition() const {
    Definition definition{name, help, head == Head::snapshot, {}};
    for (const Field<From>& field : fields) {
      const Type type = layout == Layout::arrays ? list_of(field.type) : field.type;
      definition.members.push_back({field.name, type, field.help});
    }
    return definition;
  }

  void append_to(Json& json, const From& from) const {
    for (const Field<From>& field : fields) {
      if (Json value = field.value(from); !value.is_discarded()) {
        json[std::string(field.name)] = std::move(value);
      }
    }
  }
};

// Values of the model as JSON: unknown ones are null, all are in base units.

Json rounded(double value);           // to four digits: buckets are 9 % apart
Json latency_of(std::size_t bucket);  // its upper bound, in seconds
Json bounds_json();                   // of all buckets
/// Upper bound of the bucket in which this share of the I/Os has ended; null without I/Os.
Json quantile_of(const model::SparseHistogram& histogram, double share);

/// One column of a heatmap, "FIRST:LEVELS": the bucket of the first level, and one level per bucket. '0': none, '1':
/// one I/O, '2': two or three, '3': four to seven, and so on. Empty without I/Os.
std::string heat_text(const model::SparseBuckets& buckets);
/// The operation of this name, of those that have histograms. Empty: reads; nothing: there is no such operation.
std::optional<model::Operation> operation_in(const std::string& name);

/// A text that did not come from ssdpulse; null if it is empty.
template <typename Text>
Json text_or_null(const Text& text) {
  return text.empty() ? Json() : Json(util::for_json(text));
}
std::string run_of(const model::Snapshot& snapshot);

Json sentences_json(const std::vector<std::string>& sentences);
/// `over`: the spike has ended.
Json spike_json(const model::LatencySpike& spike, bool over, const std::vector<model::Burst>& bursts,
                std::optional<model::Load> load = std::nullopt);
Json burst_json(const model::Burst& burst);
/// What held up I/O above the drives, as a mark. `now`: to name volumes and disks as people know them.
/// `clock_ahead`: of the history, whether the clock was that stamped it.
Json wait_mark_json(const model::HostWait& wait, const model::Snapshot& now, std::optional<bool> clock_ahead = {});
Json why_json(const spikes::Why& why, const std::vector<model::Burst>& bursts);
Json heat_json(const std::string& operation, Json levels);
Json attributed_json(const model::AttributedTotals& totals);

// The answers of /api/v1, each documented in api.schema.json.
Json devices_json(const model::Snapshot& snapshot, const history::RecentPast& past);
Json why_answer_json(const model::Snapshot& snapshot, const spikes::Why& why, const std::vector<model::Burst>& bursts);
/// The columns after the snapshot `since`; 0: all in memory.
Json live_json(const model::Snapshot& snapshot, const history::RecentPast& past, const std::string& device,
               std::uint64_t since, model::Operation heat);
Json column_json(const model::Snapshot& snapshot, const history::RecentPast& past, const std::string& device,
                 std::uint64_t number);  // null if memory does not reach that far
Json tenants_json(const model::DeviceSnapshot& device, const model::Snapshot& snapshot);
Json what_if_json(const model::Snapshot& snapshot, const std::string& device, const flash::WhatIfQuestion& question);
/// `past` null: nothing is known, for this `reason`.
Json day_json(const model::PastDay* past, std::string_view reason);
Json stacks_json(const model::Snapshot& snapshot);
/// `host`: its name; empty: not known.
Json status_json(const model::Snapshot& snapshot, const history::RecentPast& past, const std::string& host = "");
Json doctor_json(const model::Snapshot& snapshot, const advice::FindingAges& finding_ages);
Json cost_json(const model::Snapshot& snapshot);

// The objects that each file makes, for the schema.
Definitions mark_definitions();
Definitions device_definitions();
Definitions day_definitions();
Definitions what_if_definitions();
Definitions live_definitions();
Definitions history_definitions();
Definitions tenant_definitions();
Definitions stack_definitions();
Definitions status_definitions();

}  // namespace ssdpulse::page
