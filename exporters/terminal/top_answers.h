// SPDX-License-Identifier: Apache-2.0
// at(), number(), text() and others: what an answer of the API has at some place, whatever shape it has; what it lacks
// is null, absent or empty. Only for the files of `top`.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ssdpulse::terminal {

using Json = nlohmann::json;

inline const Json kNothing;

inline const Json& at(const Json& json, const char* key) {
  const auto found = json.find(key);  // the end, if it is not an object
  return found != json.end() ? *found : kNothing;
}

inline const Json& element(const Json& array, std::size_t i) {
  return array.is_array() && i < array.size() ? array[i] : kNothing;
}

inline std::optional<double> number(const Json& json) {
  return json.is_number() ? std::optional(json.get<double>()) : std::nullopt;
}

inline std::string text(const Json& json) { return json.is_string() ? json.get<std::string>() : ""; }

inline std::vector<std::string> texts(const Json& json) {
  std::vector<std::string> result;
  for (const Json& element : json.is_array() ? json : Json::array()) {
    result.push_back(text(element));
  }
  return result;
}

/// The last point of a history that began at `at_time` or before; nothing if none did, or if it was over by then.
std::optional<std::size_t> point_at(const Json& history, double at_time);

}  // namespace ssdpulse::terminal
