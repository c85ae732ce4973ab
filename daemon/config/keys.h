// SPDX-License-Identifier: Apache-2.0
// The table of keys: which keys exist, what they may hold, where a value goes, and what people read about them.
// A new key is one entry of the table in keys.cpp and a field in config.h; the parser, print, the check for restarts,
// the schema, the commented defaults and the manual all follow from it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/config/config.h"
#include "daemon/config/value_kinds.h"
#include "daemon/config/yaml_document.h"

namespace ssdpulse::config {

/// In texts, {min}, {max} and {values} stand for what the kind allows.
struct KeyTexts {
  util::Text help;      // sentences: the comment in the defaults, and the description in the schema
  util::Text manual;    // mdoc, of ssdpulse.yaml(5)
  util::Text examples;  // values other than the default, as a JSON list
};

struct Key {
  std::string_view section;
  std::string_view name;
  bool needs_restart = false;
  KeyTexts texts;
  Form form;
  Value by_default;                                               // as documents show it
  std::function<void(const Value&, const Field&, Config&)> read;  // if wrong, reports it and leaves Config unchanged
  std::function<Value(const Config&)> write;
  std::function<bool(const Config&, const Config&)> equal;
  std::function<void(Config&)> reset;  // to the default

  [[nodiscard]] std::string full_name() const { return std::string(section) + "." + std::string(name); }
};

struct Section {
  util::Text name;
  util::Text about;  // a sentence
};

/// In the order in which print shows them, sections together.
const std::vector<Key>& keys();
std::span<const Section> sections();

}  // namespace ssdpulse::config
