// SPDX-License-Identifier: Apache-2.0
// Walks the document along the table of keys: what is unknown or given twice is found here, for every key alike.
#include "daemon/config/parse.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "daemon/config/document.h"
#include "daemon/config/keys.h"
#include "daemon/util/read_file.h"
#include "daemon/util/result.h"

namespace ssdpulse::config {
namespace {

/// Levenshtein's: how many letters to insert, delete or replace.
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

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

std::string unknown_key(const std::string& name, const std::vector<std::string>& known) {
  constexpr std::size_t kMostLetters = 64;  // no key is that long, and the distance to a hostile one takes its time
  std::string_view nearest;
  std::size_t least = kMostLetters;
  for (const std::string& candidate : known) {
    const std::size_t distance = name.size() > kMostLetters ? kMostLetters : edit_distance(name, candidate);
    if (distance < least && distance * 2 <= candidate.size()) {
      least = distance;
      nearest = candidate;
    }
  }
  return "unknown key " + in_quotes(name) + (nearest.empty() ? "" : " (did you mean '" + std::string(nearest) + "'?)") +
         "; expected " + (known.size() > 1 ? "one of " : "") + joined(known);
}

using Visit = std::function<void(const std::string& name, const Value& value)>;

/// Calls `visit` for each entry with a known name, also for a second one of that name: its value may be wrong too.
void visit_entries(const Value& mapping, const std::vector<std::string>& known, Report& report, const Visit& visit) {
  std::map<std::string, Position> seen;
  for (const Entry& entry : mapping.entries) {
    const Value& name = entry.key;
    if (name.kind != Value::Kind::scalar) {
      report.add(name.at, "expected a word as key, got " + std::string(describe(name.kind)));
      continue;
    }
    if (const auto [first, is_new] = seen.emplace(name.text, name.at); !is_new) {
      report.add(name.at, "duplicate key " + in_quotes(name.text) + ", first on line " +
                              std::to_string(first->second.line) + "; expected each key once");
    }
    if (std::find(known.begin(), known.end(), name.text) == known.end()) {
      report.add(name.at, unknown_key(name.text, known));
      continue;
    }
    Value value = entry.value;
    if (value.kind == Value::Kind::null) {
      value.at = name.at;  // yaml-cpp places what is absent at the next token
    }
    visit(name.text, value);
  }
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    if (names.empty() || names.back() != key.section) {
      names.push_back(key.section);
    }
  }
  return names;
}

void read_section(const std::string& section, const Value& value, Report& report, Config& config) {
  if (value.kind == Value::Kind::null) {
    return;
  }
  std::map<std::string, const Key*> by_name;
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    if (key.section == section) {
      by_name[key.name] = &key;
      names.push_back(key.name);
    }
  }
  if (value.kind != Value::Kind::mapping) {
    report.add(value.at,
               section + ": expected keys below it (" + joined(names) + "), got " + std::string(describe(value.kind)));
    return;
  }
  visit_entries(value, names, report, [&](const std::string& name, const Value& held) {
    const Key& key = *by_name.at(name);
    const std::string full_name = key.full_name();
    const Field field{full_name, report};
    if (held.kind == Value::Kind::null) {
      field.wrong(held.at, "has no value; expected one, or the line left out for the default");
      return;
    }
    key.read(held, field, config);
  });
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
    // Its words name the path, as those of a problem do already.
    return text.error().error_number == EFBIG
               ? util::fail("is longer than " + std::to_string(kMaxBytes) + " bytes", EFBIG)
               : util::fail_errno("cannot be read", text.error().error_number);
  }
  return text;
}

}  // namespace

ParseOutcome parse(std::string_view text, std::string_view file_name) {
  Report report(file_name);
  Config config;
  if (const std::optional<Value> root = read_document(text, report)) {
    if (root->kind == Value::Kind::mapping) {
      visit_entries(*root, section_names(), report, [&](const std::string& section, const Value& value) {
        read_section(section, value, report, config);
      });
    } else if (root->kind != Value::Kind::null) {
      report.add(root->at,
                 "expected sections (" + joined(section_names()) + "), got " + std::string(describe(root->kind)));
    }
  }
  if (!report.empty()) {
    return tl::unexpected(report.take());
  }
  return config;
}

ParseOutcome load(const std::string& path) {
  const auto text = read_regular_file(path);
  if (!text) {
    return tl::unexpected(std::vector<Problem>{{path, 0, 0, text.error().message}});
  }
  return parse(*text, path);
}

std::string print(const Config& config) {
  Value root;
  root.kind = Value::Kind::mapping;
  for (const Key& key : keys()) {
    if (root.entries.empty() || root.entries.back().key.text != key.section) {
      root.entries.push_back({make_scalar(key.section, true), {}});
      root.entries.back().value.kind = Value::Kind::mapping;
    }
    root.entries.back().value.entries.push_back({make_scalar(key.name, true), key.write(config)});
  }
  return write_document(root);
}

std::vector<std::string> known_keys() {
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    names.push_back(key.full_name());
  }
  return names;
}

std::vector<std::string> requires_restart(const Config& running, const Config& wanted) {
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    if (key.needs_restart && !key.equal(running, wanted)) {
      names.push_back(key.full_name());
    }
  }
  return names;
}

}  // namespace ssdpulse::config
