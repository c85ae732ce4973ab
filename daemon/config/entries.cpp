// SPDX-License-Identifier: Apache-2.0
// Checks one mapping against the names that it may contain, and reads the file that holds it.
#include "daemon/config/entries.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "daemon/util/read_file.h"

namespace ssdpulse::config {
namespace {

/// Levenshtein distance: how many letters to insert, delete or replace.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string unknown_key(const std::string& name, const std::vector<std::string>& known) {
  constexpr std::size_t kMaxLetters = 64;  // no key is that long, and the distance to a hostile one would take long
  std::string_view nearest;
  std::size_t least = kMaxLetters;
  for (const std::string& candidate : known) {
    const std::size_t distance = name.size() > kMaxLetters ? kMaxLetters : edit_distance(name, candidate);
    if (distance < least && distance * 2 <= candidate.size()) {
      least = distance;
      nearest = candidate;
    }
  }
  return "unknown key " + in_quotes(name) + (nearest.empty() ? "" : " (did you mean '" + std::string(nearest) + "'?)") +
         "; expected " + (known.size() > 1 ? "one of " : "") + joined(known);
}

}  // namespace

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

void visit_entries(const Value& mapping, const std::vector<std::string>& known, Report& report, const Visit& visit) {
  std::map<std::string, Position> seen;
  for (const Entry& entry : mapping.entries) {
    const Value& name = entry.key;
    if (name.kind != Value::Kind::scalar) {
      report.add(name.at, "expected a word as key, got " + std::string(describe(name.kind)));
      continue;
    }
    if (const auto [first, is_new] = seen.emplace(name.text, name.at); !is_new) {
      // A key that is not in a list of ours may be a secret in the wrong place.
      report.add(name.at, "duplicate key" + (known.empty() ? "" : " " + in_quotes(name.text)) + ", first on line " +
                              std::to_string(first->second.line) + "; expected each key once");
    }
    if (!known.empty() && std::find(known.begin(), known.end(), name.text) == known.end()) {
      report.add(name.at, unknown_key(name.text, known));
      continue;
    }
    Value value = entry.value;
    if (value.kind == Value::Kind::null) {
      value.at = name.at;  // yaml-cpp places an absent value at the next token
    }
    visit(name.text, value);
  }
}

util::Result<std::string> read_regular_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return util::fail_errno("cannot be opened");
  }
  if (!S_ISREG(status.st_mode)) {
    return util::fail(S_ISDIR(status.st_mode) ? "is a directory; expected a file" : "expected a regular file");
  }
  auto text = util::read_file(path, kMaxBytes);
  if (!text) {
    // Its message names the path, which a problem does already.
    return text.error().error_number == EFBIG
               ? util::fail("is longer than " + std::to_string(kMaxBytes) + " bytes", EFBIG)
               : util::fail_errno("cannot be read", text.error().error_number);
  }
  return text;
}

}  // namespace ssdpulse::config
