// SPDX-License-Identifier: Apache-2.0
// The part of JSON Schema that ours use, and stricter: an object has no other names than those that its schema has, and
// any names only where additionalProperties or patternProperties say so.
#pragma once

#include <gtest/gtest.h>
#include <regex.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace ssdpulse::test {

/// With the POSIX library: std::regex under sanitizers makes g++ 12 warn in its own headers.
inline bool matches(const std::string& text, const std::string& pattern) {
  regex_t compiled;
  if (regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    ADD_FAILURE() << "not a pattern: " << pattern;
    return false;
  }
  const bool found = regexec(&compiled, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&compiled);
  return found;
}

class JsonSchema {
 public:
  using Json = nlohmann::json;

  explicit JsonSchema(Json root) : root_(std::move(root)) {}
  [[nodiscard]] const Json& root() const { return root_; }

  /// What is wrong with the value and where; empty: nothing.
  [[nodiscard]] std::string flaw(const Json& node, const Json& value, const std::string& where = "$") const {
    if (node.contains("$ref") && !node.contains("type")) {
      return flaw(refers_to(node), value, where);
    }
    if (node.contains("$ref")) {  // it has more names than what it refers to
      if (std::string found = flaw_besides_names(refers_to(node), value, where); !found.empty()) {
        return found;
      }
    }
    std::string found = flaw_besides_names(node, value, where);
    return !found.empty() || !value.is_object() ? found : flaw_of_names(node, value, where);
  }
  [[nodiscard]] std::string flaw_by_name(const std::string& definition, const Json& value) const {
    return flaw({{"$ref", "#/$defs/" + definition}}, value, definition);
  }

 private:
  [[nodiscard]] const Json& refers_to(const Json& node) const {
    return root_.at(Json::json_pointer(node.at("$ref").get<std::string>().substr(1)));
  }

  static bool is_of(const Json& value, const std::string& type) {
    return type == "null"      ? value.is_null()
           : type == "boolean" ? value.is_boolean()
           : type == "integer" ? value.is_number_integer()
           : type == "number"  ? value.is_number()
           : type == "string"  ? value.is_string()
           : type == "array"   ? value.is_array()
                               : type == "object" && value.is_object();
  }

  [[nodiscard]] std::string flaw_besides_names(const Json& node, const Json& value, const std::string& where) const {
    const auto wrong = [&](const std::string& what) {
      return where + ": " + what + ": " + value.dump().substr(0, 200);
    };
    if (node.contains("anyOf") && std::none_of(node.at("anyOf").begin(), node.at("anyOf").end(),
                                               [&](const Json& one) { return flaw(one, value, where).empty(); })) {
      return wrong("is none of those allowed");
    }
    if (node.contains("type")) {
      const Json types = node.at("type").is_array() ? node.at("type") : Json::array({node.at("type")});
      if (std::none_of(types.begin(), types.end(), [&](const Json& type) { return is_of(value, type); })) {
        return wrong("is no " + types.dump());
      }
    }
    if (node.contains("enum") && std::count(node.at("enum").begin(), node.at("enum").end(), value) == 0) {
      return wrong("is not in the list");
    }
    if (node.contains("const") && node.at("const") != value) {
      return wrong("is not the constant");
    }
    if (value.is_number() && ((node.contains("minimum") && value < node.at("minimum")) ||
                              (node.contains("maximum") && value > node.at("maximum")))) {
      return wrong("is out of range");
    }
    if (value.is_string()) {
      const auto text = value.get<std::string>();
      if (text.size() < node.value("minLength", 0U) || !matches(text, node.value("pattern", ""))) {
        return wrong("is malformed");
      }
    }
    return value.is_array()    ? flaw_of_list(node, value, where)
           : value.is_object() ? flaw_of_members(node, value, where)
                               : "";
  }

  [[nodiscard]] std::string flaw_of_list(const Json& node, const Json& value, const std::string& where) const {
    if (value.size() < node.value("minItems", 0U) || value.size() > node.value("maxItems", value.size()) ||
        (node.value("uniqueItems", false) && std::set<Json>(value.begin(), value.end()).size() != value.size())) {
      return where + ": too few or too many entries, or one twice";
    }
    for (std::size_t i = 0; i < value.size(); ++i) {
      const bool by_place = node.contains("prefixItems") && i < node.at("prefixItems").size();
      const Json& of = by_place                 ? node.at("prefixItems")[i]
                       : node.contains("items") ? node.at("items")
                                                : Json::object();
      if (std::string found = flaw(of, value[i], where + "[" + std::to_string(i) + "]"); !found.empty()) {
        return found;
      }
    }
    return "";
  }

  [[nodiscard]] std::string flaw_of_members(const Json& node, const Json& value, const std::string& where) const {
    for (const Json& name : node.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) {
        return where + ": " + name.get<std::string>() + " is missing";
      }
    }
    const Json properties = node.value("properties", Json::object());
    for (const auto& [name, member] : value.items()) {
      if (properties.contains(name)) {
        if (std::string found = flaw(properties.at(name), member, where + "." + name); !found.empty()) {
          return found;
        }
      }
    }
    return "";
  }

  /// Names that neither the node nor what it refers to has.
  [[nodiscard]] std::string flaw_of_names(const Json& node, const Json& value, const std::string& where) const {
    const Json properties = node.value("properties", Json::object());
    const Json referred = node.contains("$ref") ? refers_to(node).value("properties", Json::object()) : Json::object();
    const Json patterns = node.value("patternProperties", Json::object());
    for (const auto& [name, member] : value.items()) {
      if (properties.contains(name) || referred.contains(name)) {
        continue;
      }
      bool known = false;
      for (const auto& [pattern, of] : patterns.items()) {
        if (matches(name, pattern)) {
          known = true;
          if (std::string found = flaw(of, member, where + "." + name); !found.empty()) {
            return found;
          }
        }
      }
      const bool any = node.contains("additionalProperties") && node.at("additionalProperties").is_object();
      if (any) {
        if (std::string found = flaw(node.at("additionalProperties"), member, where + "." + name); !found.empty()) {
          return found;
        }
      }
      if (!known && !any && node.contains("type")) {
        return where + ": the schema has no " + name;
      }
    }
    return "";
  }

  Json root_;
};

}  // namespace ssdpulse::test
