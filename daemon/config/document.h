// SPDX-License-Identifier: Apache-2.0
// Value: a YAML document as a tree, before it is interpreted.
// A tree of our own, because yaml-cpp's keeps only the first of two equal keys and expands aliases without bound. Size,
// depth and number of values are bounded whatever the input; anchors, aliases and tags are rejected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config/problem.h"

namespace ssdpulse::config {

inline constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;
inline constexpr std::size_t kMaxDepth = 16;
inline constexpr std::size_t kMaxValues = 10'000;

struct Entry;

struct Value {
  enum class Kind : std::uint8_t { null, scalar, list, mapping };

  Kind kind = Kind::null;
  Position at;
  std::string text;            // scalar
  std::vector<Value> items;    // list
  std::vector<Entry> entries;  // mapping: in the order of the text, equal keys kept
  bool plain = false;          // for write_document: a word that needs no quotes
};

struct Entry {
  Value key;
  Value value;
};

Value make_scalar(std::string_view text, bool plain);

/// "a list", "a mapping", ...: what the operator wrote instead of what was expected.
std::string_view describe(Value::Kind kind);

/// The one document of `text` (null when there is none); nothing, and one problem reported, if it is not valid YAML or
/// exceeds the bounds.
std::optional<Value> read_document(std::string_view text, Report& report);

/// YAML that read_document reads back. Every scalar is quoted unless marked plain, so that no other reader
/// takes `on`, `0755` or `*` for something else.
std::string write_document(const Value& root);

}  // namespace ssdpulse::config
