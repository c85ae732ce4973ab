// SPDX-License-Identifier: Apache-2.0
#include "daemon/client/server_text.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "exporters/coding/outside_text.h"

namespace ssdpulse::client {
namespace {

using Json = nlohmann::json;

/// Names of fields that are not as they should be are replaced; of two that become the same, one is kept.
void clean_names(Json& object) {
  std::vector<std::string> hostile;
  for (const auto& [name, value] : object.items()) {
    if (coding::outside_sentence(name) != name) {
      hostile.push_back(name);
    }
  }
  for (const std::string& name : hostile) {
    Json value = std::move(object[name]);
    object.erase(name);
    object[coding::outside_sentence(name)] = std::move(value);
  }
}

}  // namespace

std::string first_line_of(std::string_view body) {
  constexpr std::size_t kMostBytes = 300;
  return coding::outside_sentence(body.substr(0, body.find('\n')).substr(0, kMostBytes));
}

void clean_strings(Json& answer) {
  std::vector<Json*> left{&answer};  // no recursion: a server chooses how deep an answer is
  while (!left.empty()) {
    Json& one = *left.back();
    left.pop_back();
    if (one.is_string()) {
      one = coding::outside_sentence(one.get_ref<const std::string&>());
      continue;
    }
    if (one.is_object()) {
      clean_names(one);
    }
    if (one.is_structured()) {
      for (Json& part : one) {
        left.push_back(&part);
      }
    }
  }
}

}  // namespace ssdpulse::client
