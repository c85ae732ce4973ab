// SPDX-License-Identifier: Apache-2.0
#include "daemon/client/server_text.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "daemon/util/outside_text.h"

namespace ssdpulse::client {
namespace {

using Json = nlohmann::json;

/// Names of fields that are not as they should be are replaced; of two that become the same, one is kept.
void clean_names(Json& object) {
  std::vector<std::string> hostile;
  for (const auto& [name, value] : object.items()) {
    if (util::for_json(name, util::kLongestSentence) != name) {
      hostile.push_back(name);
    }
  }
  for (const std::string& name : hostile) {
    Json value = std::move(object[name]);
    object.erase(name);
    object[util::for_json(name, util::kLongestSentence)] = std::move(value);
  }
}

}  // namespace

std::string first_line_of(std::string_view body) {
  constexpr std::size_t kMaxLineBytes = 300;
  return util::for_json(body.substr(0, body.find('\n')).substr(0, kMaxLineBytes), util::kLongestSentence);
}

void clean_strings(Json& answer) {
  std::vector<Json*> left{&answer};  // no recursion: a server chooses how deep an answer is
  while (!left.empty()) {
    Json& one = *left.back();
    left.pop_back();
    if (one.is_string()) {
      one = util::for_json(one.get_ref<const std::string&>(), util::kLongestSentence);
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
