// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/accepted_file.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>

#include "daemon/base/glob.h"

namespace ssdpulse::config {
namespace {

const std::vector<std::string> kAcceptedKeys{"id", "device", "reason", "expires"};

/// YYYY-MM-DD, so that dates can be compared as text.
bool is_date(const std::string& text) {
  return util::glob_matches("[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]", text) &&
         (std::chrono::year(std::stoi(text)) / std::stoi(text.substr(5)) / std::stoi(text.substr(8))).ok();
}

void read_accepted(const Value& item, Report& report, std::vector<model::Acceptance>& entries) {
  if (item.kind != Value::Kind::mapping) {
    report.add(item.at, "expected a mapping (" + joined(kAcceptedKeys) + "), got " + std::string(describe(item.kind)));
    return;
  }
  std::map<std::string, std::string> texts;
  visit_entries(item, kAcceptedKeys, report, [&](const std::string& key, const Value& value) {
    const Field field{key, report};
    if (value.kind != Value::Kind::scalar || value.text.empty()) {
      field.wrong(value, "expected a text, got " + in_quotes(value));
    } else if (key == "expires" && !is_date(value.text)) {
      field.wrong(value, "expected a date as in 2027-01-31, got " + in_quotes(value));
    }
    texts[key] = value.text;
  });
  for (const std::string& key : kAcceptedKeys) {
    if (texts.count(key) == 0) {
      report.add(item.at, key + " is missing; expected " + joined(kAcceptedKeys, ", ", " and "));
    }
  }
  entries.push_back({texts["id"], texts["device"], texts["reason"], texts["expires"]});
}

}  // namespace

AcceptedOutcome parse_accepted(std::string_view text, std::string_view file_name) {
  Report report(file_name);
  std::vector<model::Acceptance> entries;
  if (const std::optional<Value> root = read_document(text, report)) {
    if (root->kind == Value::Kind::mapping) {
      visit_entries(*root, {"accepted"}, report, [&](const std::string&, const Value& list) {
        if (Field{"accepted", report}.expect(Value::Kind::list, list, "a list")) {
          for (const Value& item : list.items) {
            read_accepted(item, report, entries);
          }
        }
      });
    } else if (root->kind != Value::Kind::null) {
      report.add(root->at, "expected a mapping with the key accepted, got " + std::string(describe(root->kind)));
    }
  }
  if (!report.empty()) {
    return tl::unexpected(report.take());
  }
  return entries;
}

AcceptedOutcome load_accepted(const std::string& path) { return parse_file(path, parse_accepted); }

AcceptedOutcome load_accepted_if_present(const std::string& path) {
  return ::access(path.c_str(), F_OK) != 0 && errno == ENOENT ? AcceptedOutcome{} : load_accepted(path);
}

}  // namespace ssdpulse::config
