// SPDX-License-Identifier: Apache-2.0
// The table of keys: which keys exist, what they may hold, and where a value goes.
// A new key is one line of the table in keys.cpp and a field in config.h; the parser, print, the list of known keys and
// the check for restarts all follow from it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/config/document.h"
#include "daemon/config/problem.h"

namespace ssdpulse::config {

/// Where a key's reader reports: every message begins with the key's full name.
struct Field {
  std::string_view key;
  Report& report;
  void wrong(Position at, const std::string& message) const { report.add(at, std::string(key) + ": " + message); }
};

struct Key {
  std::string section;
  std::string name;
  bool needs_restart = false;
  std::function<void(const Value&, const Field&, Config&)> read;  // if wrong, reports it and leaves Config unchanged
  std::function<Value(const Config&)> write;
  std::function<bool(const Config&, const Config&)> equal;

  [[nodiscard]] std::string full_name() const { return section + "." + name; }
};

/// In the order in which print shows them, sections together.
const std::vector<Key>& keys();

}  // namespace ssdpulse::config
