// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/measured_json.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace ssdpulse::audit {
namespace {

using Json = nlohmann::json;

template <typename T>
concept Record = requires(T& record) {
  T::visit(record, [](const auto&...) {});
};

std::string text_of(const std::string& key) { return key; }
std::string text_of(std::uint32_t key) { return std::to_string(key); }
// Whole, and unchanged: it is what for_label() has made, which is harmless in JSON, too.
std::string text_of(const util::OutsideText& key) { return util::for_json(key, std::string::npos); }

/// Null, or an object without members, is what a reader takes for absent.
class Writer {
 public:
  static Json of(const Figure& figure) { return figure ? Json(*figure) : Json(); }
  static Json of(double figure) { return figure; }
  static Json of(bool is) { return is ? Json(true) : Json(); }
  static Json of(const std::string& name) { return name.empty() ? Json() : Json(name); }

  template <typename Enum, std::size_t kValues>
  static Json of(const std::optional<Enum>& value, const std::array<std::string_view, kValues>& names) {
    return value ? Json(std::string(name(*value, names))) : Json();
  }

  static Json of(const Record auto& record) {
    Json object = Json::object();
    std::remove_cvref_t<decltype(record)>::visit(record,
                                                 [&](std::string_view name, const auto& value, const auto&... names) {
                                                   add(object, name, of(value, names...));
                                                 });
    return object;
  }

  template <typename Value, std::size_t kValues>
  static Json of(const std::array<Value, kValues>& values, const std::array<std::string_view, kValues>& names) {
    Json object = Json::object();
    for (std::size_t i = 0; i < kValues; ++i) {
      add(object, names[i], of(values[i]));
    }
    return object;
  }

  /// Also entries without members: the key alone says something.
  template <typename Key, typename Value>
  static Json of(const std::map<Key, Value>& values) {
    Json object = Json::object();
    for (const auto& [key, value] : values) {
      object[text_of(key)] = of(value);
    }
    return object;
  }

 private:
  static void add(Json& object, std::string_view name, Json value) {
    if (!value.is_null() && !(value.is_object() && value.empty())) {
      object[std::string(name)] = std::move(value);
    }
  }
};

/// Each function returns what is wrong, in words; empty: nothing.
class Parser {
 public:
  static std::string read(const Json& json, Figure& figure) { return read(json, figure.emplace()); }
  static std::string read(const Json& json, double& figure) {
    if (!json.is_number()) {
      return "expected a number";
    }
    figure = json.get<double>();
    return "";
  }
  static std::string read(const Json& json, bool& is) {
    if (!json.is_boolean()) {
      return "expected true or false";
    }
    is = json.get<bool>();
    return "";
  }
  static std::string read(const Json& json, std::string& name) {
    return json.is_string() && key_in(json.get_ref<const std::string&>(), name) ? "" : "expected a plain name";
  }

  /// Another daemon may know values that this one does not.
  template <typename Enum, std::size_t kValues>
  static std::string read(const Json& json, std::optional<Enum>& value,
                          const std::array<std::string_view, kValues>& names) {
    if (!json.is_string()) {
      return "expected a name";
    }
    const auto found = std::find(names.begin(), names.end(), json.get_ref<const std::string&>());
    value = found == names.end() ? std::nullopt : std::optional(static_cast<Enum>(found - names.begin()));
    return "";
  }

  static std::string read(const Json& json, Record auto& record) {
    std::string wrong = json.is_object() ? "" : "expected an object";
    std::remove_cvref_t<decltype(record)>::visit(record, [&](std::string_view name, auto& value, const auto&... names) {
      if (wrong.empty()) {
        wrong = read_member(json, name, value, names...);
      }
    });
    return wrong;
  }

  template <typename Value, std::size_t kValues>
  static std::string read(const Json& json, std::array<Value, kValues>& values,
                          const std::array<std::string_view, kValues>& names) {
    std::string wrong = json.is_object() ? "" : "expected an object";
    for (std::size_t i = 0; i < kValues && wrong.empty(); ++i) {
      wrong = read_member(json, names[i], values[i]);
    }
    return wrong;
  }

  template <typename Key, typename Value>
  static std::string read(const Json& json, std::map<Key, Value>& values) {
    if (!json.is_object() || json.size() > kMaxMeasuredEntries) {
      return "expected an object of at most " + std::to_string(kMaxMeasuredEntries) + " entries";
    }
    for (const auto& [text, value] : json.items()) {
      Key key{};
      if (!key_in(text, key)) {
        return "an entry has an invalid name";
      }
      if (std::string wrong = read(value, values[key]); !wrong.empty()) {
        return "of an entry, " + wrong;
      }
    }
    return "";
  }

 private:
  template <typename... Value>
  static std::string read_member(const Json& object, std::string_view name, Value&... value) {
    const auto found = object.find(std::string(name));
    std::string wrong = found == object.end() ? "" : read(*found, value...);
    return wrong.empty() ? "" : std::string(name) + ": " + wrong;
  }

  static bool key_in(const std::string& text, std::string& key) {
    key = text;
    return util::is_plain_name(text);
  }
  static bool key_in(const std::string& text, std::uint32_t& key) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), key);
    return error == std::errc() && end == text.data() + text.size();
  }
  static bool key_in(const std::string& text, util::OutsideText& key) {
    key = text;
    return true;
  }
};

}  // namespace

std::string measured_json(const Measured& measured) {
  return Writer::of(measured).dump(-1, ' ', false, Json::error_handler_t::replace);
}

util::Result<Measured> parse_measured(std::string_view json) {
  if (json.size() > kMaxMeasuredBytes) {
    return util::fail("more than " + std::to_string(kMaxMeasuredBytes) + " bytes");
  }
  constexpr int kDeepest = 8;  // what is deeper is none of it, and only takes memory
  const Json parsed = Json::parse(
      json, [](int depth, Json::parse_event_t, const Json&) { return depth <= kDeepest; }, false);
  if (parsed.is_discarded()) {
    return util::fail("not JSON, or only the beginning of it");
  }
  Measured measured;
  measured.answered = true;
  if (const std::string wrong = Parser::read(parsed, measured); !wrong.empty()) {
    return util::fail(wrong);
  }
  return measured;
}

}  // namespace ssdpulse::audit
