// SPDX-License-Identifier: Apache-2.0
// Object: one JSON object of the API as a table with an entry for each field. Both the answers and api.schema.json are
// made from it, so neither can have a field that the other lacks. Only for the files of this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
};

/// As the schema's definition of that name says: an object, mostly.
constexpr Type defined_as(std::string_view definition) { return {definition}; }
constexpr Type or_null(Type type) {
  type.nullable = true;
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

enum class Presence : std::uint8_t { always, sometimes };

/// `From`: what the object is made from.
template <typename From>
struct Field {
  /// `get`: a lambda without captures that returns the value. `help`: what the name does not say.
  template <typename Get>
  // NOLINTNEXTLINE(google-explicit-constructor): an entry of a table
  constexpr Field(std::string_view field, Type of, Get /*get*/, std::string_view text = "",
                  Presence when = Presence::always)
      : name(field),
        type(of),
        value([](const From& from) -> Json { return json_of(Get{}(from)); }),
        help(text),
        presence(when) {}

  std::string_view name;
  Type type;
  Json (*value)(const From&);
  std::string_view help;
  Presence presence;
};

/// What the schema says of an object.
struct Definition {
  struct Member {
    std::string_view name;
    Type type;
    std::string_view help;
    Presence presence;
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

  void append_to(Json& json, const From& from) const {
    for (const Field<From>& field : fields) {
      if (Json value = field.value(from); !value.is_discarded()) {
        json[std::string(field.name)] = std::move(value);
      }
    }
  }
  [[nodiscard]] Json operator()(const From& from) const {
    Json json = Json::object();
    append_to(json, from);
    return json;
  }
  /// Each field as an array with an entry for each of them, for series: neighbours in time are alike and compress well.
  template <typename List>
  [[nodiscard]] Json arrays(const List& all) const {
    Json json = Json::object();
    for (const Field<From>& field : fields) {
      for (const From& one : all) {
        if (Json value = field.value(one); !value.is_discarded()) {
          json[std::string(field.name)].push_back(std::move(value));
        }
      }
    }
    return json;
  }
  template <typename List>
  [[nodiscard]] Json list(const List& all) const {
    Json json = Json::array();
    for (const From& one : all) {
      json.push_back((*this)(one));
    }
    return json;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): an entry in a list of definitions
  operator Definition() const {
    Definition definition{name, help, head == Head::snapshot, {}};
    for (const Field<From>& field : fields) {
      const Type type = layout == Layout::arrays ? list_of(field.type) : field.type;
      definition.members.push_back({field.name, type, field.help, field.presence});
    }
    return definition;
  }
};

}  // namespace ssdpulse::page
