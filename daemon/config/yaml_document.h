// SPDX-License-Identifier: Apache-2.0
// Value: a YAML document as a tree, before it is interpreted; Report: what is wrong with it, and where.
// A tree of our own, because yaml-cpp's keeps only the first of two equal keys and expands aliases without bound. Size,
// depth and number of values are bounded whatever the input; anchors, aliases and tags are rejected. Every reading step
// adds to one Report and continues, so that one run names every mistake. Shared by all our YAML files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/result.h"

namespace ssdpulse::config {

/// Counted from 1, columns in bytes as compilers do; line 0: the file as a whole.
struct Position {
  int line = 0;
  int column = 0;
};

struct Problem {
  std::string file;
  int line = 0;
  int column = 0;
  std::string message = {};
  bool operator==(const Problem&) const = default;
};

/// "file:line:col: message", or "file: message" for the file as a whole.
std::string to_string(const Problem& problem);

/// One line each, in the order given.
std::string to_string(const std::vector<Problem>& problems);

/// The text between single quotes, fit for one log line: at most 60 bytes of it, and "..." if there are more;
/// everything but printable ASCII as \xHH.
std::string in_quotes(std::string_view text);

class Report {
 public:
  explicit Report(std::string_view file) : file_(file) {}

  void add(Position at, std::string message) { problems_.push_back({file_, at.line, at.column, std::move(message)}); }
  [[nodiscard]] bool empty() const { return problems_.empty(); }
  [[nodiscard]] std::vector<Problem> take() { return std::move(problems_); }

 private:
  std::string file_;
  std::vector<Problem> problems_;
};

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

  Value() = default;
  explicit Value(Kind its_kind, Position its_position = {}, std::string its_text = {});
};

struct Entry {
  Value key;
  Value value;
};

Value make_scalar(std::string_view text, bool plain);

/// "a list", "a mapping", ...: what the operator wrote instead of what was expected.
std::string_view describe(Value::Kind kind);

/// The text of a scalar in quotes; of anything else, what it is.
std::string in_quotes(const Value& value);

/// Where the reader of a key reports: every message begins with the key's full name.
struct Field {
  std::string key;
  Report& report;

  void wrong(const Value& value, const std::string& message) const { report.add(value.at, key + ": " + message); }
  /// Whether the value is of this kind; if not, that is reported: "expected TEXT, got a list".
  [[nodiscard]] bool expect(Value::Kind kind, const Value& value, std::string_view text) const;
};

/// The one document of `text` (null when there is none); nothing, and one problem reported, if it is not valid YAML or
/// exceeds the bounds.
std::optional<Value> read_document(std::string_view text, Report& report);

/// YAML that read_document reads back. Every scalar is quoted unless marked plain, so that no other reader
/// takes `on`, `0755` or `*` for something else.
std::string write_document(const Value& root);

/// "a, b, c"; `last` separates the last two, if it differs from `comma`.
std::string joined(const std::vector<std::string>& names, std::string_view comma = ", ", std::string_view last = {});

using Visit = std::function<void(const std::string& name, const Value& value)>;

/// Calls `visit` for each entry with a known name, also for a second one of that name: its value may be wrong too. If
/// no names are given, any name counts as known. Reports unknown and duplicate keys.
void visit_entries(const Value& mapping, const std::vector<std::string>& known, Report& report, const Visit& visit);

bool has_control_character(std::string_view text);

/// At most kMaxBytes of a regular file (never blocks on a pipe or a terminal). The error does not name the path.
util::Result<std::string> read_regular_file(const std::string& path);

/// What `parse` makes of the text of such a file and its path: an expected value, or a list of problems.
template <typename Parse>
auto parse_file(const std::string& path, Parse parse) -> decltype(parse(std::string_view(), path)) {
  const auto text = read_regular_file(path);
  if (!text) {
    return tl::unexpected(std::vector<Problem>{{.file = path, .message = text.error().message}});
  }
  return parse(*text, path);
}

}  // namespace ssdpulse::config
