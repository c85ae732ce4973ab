// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/accepted_file.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "daemon/config/yaml_document.h"

namespace ssdpulse::config {
namespace {

const std::vector<std::string> kAcceptedKeys{"id", "device", "reason", "expires"};

/// YYYY-MM-DD, so that dates can be compared as text.
bool is_date(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  if (text.size() != kForm.size()) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == 'd' ? !digit : text[i] != kForm[i]) {
      return false;
    }
  }
  const int month = (text[5] - '0') * 10 + (text[6] - '0');
  const int day = (text[8] - '0') * 10 + (text[9] - '0');
  return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

void read_accepted(const Value& item, Report& report, std::vector<model::Acceptance>& entries) {
  if (item.kind != Value::Kind::mapping) {
    report.add(item.at, "expected a mapping (" + joined(kAcceptedKeys) + "), got " + std::string(describe(item.kind)));
    return;
  }
  std::map<std::string, std::string> texts;
  visit_entries(item, kAcceptedKeys, report, [&](const std::string& key, const Value& value) {
    if (value.kind != Value::Kind::scalar || value.text.empty()) {
      report.add(value.at, key + ": expected a text, got " + std::string(describe(value.kind)));
    } else if (key == "expires" && !is_date(value.text)) {
      report.add(value.at, "expires: expected a date as in 2027-01-31, got " + in_quotes(value.text));
    }
    texts[key] = value.text;
  });
  for (const std::string& key : kAcceptedKeys) {
    if (texts.count(key) == 0) {
      report.add(item.at, key + " is missing: each needs " + joined(kAcceptedKeys));
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
        if (list.kind != Value::Kind::list) {
          report.add(list.at, "accepted: expected a list, got " + std::string(describe(list.kind)));
        }
        std::for_each(list.items.begin(), list.items.end(),
                      [&](const Value& item) { read_accepted(item, report, entries); });
      });
    } else if (root->kind != Value::Kind::null) {
      report.add(root->at, "expected accepted: and a list, got " + std::string(describe(root->kind)));
    }
  }
  if (!report.empty()) {
    return tl::unexpected(report.take());
  }
  return entries;
}

AcceptedOutcome load_accepted(const std::string& path) {
  const auto text = read_regular_file(path);
  if (!text) {
    return tl::unexpected(std::vector<Problem>{{path, 0, 0, text.error().message}});
  }
  return parse_accepted(*text, path);
}

AcceptedOutcome load_accepted_if_present(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0 ? load_accepted(path) : AcceptedOutcome{};
}

}  // namespace ssdpulse::config
