// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/value_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <system_error>

#include "daemon/config/value_text.h"
#include "daemon/config/yaml_document.h"
#include "daemon/model/metric_groups.h"

namespace ssdpulse::config {
namespace {

constexpr std::string_view kSelf = "self";

Value list_of(const std::vector<std::string>& texts) {
  Value value;
  value.kind = Value::Kind::list;
  for (const std::string& text : texts) {
    value.items.push_back(make_scalar(text, false));
  }
  return value;
}

std::string instead_of(std::string_view expected, const Value& value) {
  return "expected " + std::string(expected) + ", got " + std::string(describe(value.kind));
}

}  // namespace

void ListenAddresses::read(const Value& value, const Field& field, std::vector<std::string>& out) const {
  const bool one = value.kind == Value::Kind::scalar;
  if (!one && (value.kind != Value::Kind::list || value.items.empty())) {
    const std::string got = value.kind == Value::Kind::list ? "an empty list" : std::string(describe(value.kind));
    field.wrong(value.at, "expected an address (HOST:PORT, [IPV6]:PORT or :PORT) or a list of them, got " + got);
    return;
  }
  std::vector<std::string> texts;
  std::map<std::string, int> first_lines;
  for (const Value& item : one ? std::vector<Value>{value} : value.items) {
    if (item.kind != Value::Kind::scalar) {
      field.wrong(item.at, instead_of("HOST:PORT, [IPV6]:PORT or :PORT", item));
      continue;
    }
    const auto address = parse_listen_address(item.text);
    if (!address) {
      field.wrong(item.at, address.error().message);
      continue;
    }
    const auto [first, is_new] = first_lines.emplace(to_string(*address), item.at.line);
    if (!is_new) {
      field.wrong(item.at, in_quotes(item.text) + " is given twice, first on line " + std::to_string(first->second) +
                               "; expected each address once");
    }
    texts.push_back(item.text);
  }
  out = std::move(texts);
}

Value ListenAddresses::write(const std::vector<std::string>& texts) const { return list_of(texts); }

Value ListenAddresses::shown(const std::vector<std::string>& texts) const {
  return texts.size() == 1 ? make_scalar(texts.front(), false) : write(texts);
}

Form ListenAddresses::form() const {
  return {R"("anyOf": [{"$ref": "#/$defs/address"},
             {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/$defs/address"}}])"};
}

void Patterns::read(const Value& value, const Field& field, std::vector<std::string>& out) const {
  constexpr std::string_view kExpected = "a list of patterns, as in [\"nvme*\", \"sd*\"]";
  if (value.kind != Value::Kind::list) {
    field.wrong(value.at, instead_of(kExpected, value));
    return;
  }
  if (value.items.size() < at_least) {
    field.wrong(value.at, "the list is empty; expected at least one pattern, \"*\" for every device");
    return;
  }
  std::vector<std::string> globs;
  for (const Value& item : value.items) {
    if (item.kind != Value::Kind::scalar) {
      field.wrong(item.at, instead_of("a pattern, as in \"nvme*\"", item));
    } else if (const auto flaw = validate_device_pattern(item.text)) {
      field.wrong(item.at, in_quotes(item.text) + " " + *flaw + "; expected a pattern, as in \"nvme*\"");
    }
    globs.push_back(item.text);
  }
  out = std::move(globs);
}

Value Patterns::write(const std::vector<std::string>& globs) const { return list_of(globs); }

Form Patterns::form() const {
  const std::string count = at_least > 0 ? fmt::format(R"("minItems": {}, )", at_least) : "";
  return {R"("type": "array", )" + count + R"("items": {"$ref": "#/$defs/pattern"})"};
}

void read_word(const Value& value, const Field& field, const std::vector<std::string>& words, std::size_t& out) {
  std::string expected = "expected ";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (value.kind == Value::Kind::scalar && value.text == words[i]) {
      out = i;
      return;
    }
    expected += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  const bool is_scalar = value.kind == Value::Kind::scalar;
  field.wrong(value.at, expected + ", got " + (is_scalar ? in_quotes(value.text) : std::string(describe(value.kind))));
}

Form form_of_words(std::vector<std::string> words) {
  const std::string listed = fmt::format(R"("type": "string", "enum": ["{}"])", fmt::join(words, "\", \""));
  return {listed, "", "", std::move(words)};
}

void DurationWithin::read(const Value& value, const Field& field, std::chrono::nanoseconds& out) const {
  if (value.kind != Value::Kind::scalar) {
    field.wrong(value.at, instead_of("a duration, as in " + format_duration(least), value));
    return;
  }
  const auto duration = parse_duration(value.text);
  if (!duration) {
    field.wrong(value.at, duration.error().message);
  } else if (*duration < least || *duration > most) {
    field.wrong(value.at, "expected " + format_duration(least) + " to " + format_duration(most) + ", got " +
                              in_quotes(value.text));
  } else {
    out = *duration;
  }
}

Value DurationWithin::write(std::chrono::nanoseconds duration) const {
  return make_scalar(format_duration(duration), true);
}

Form DurationWithin::form() const {
  return {R"("$ref": "#/$defs/duration")", format_duration(least), format_duration(most)};
}

void SizeWithin::read(const Value& value, const Field& field, std::uint64_t& out) const {
  if (value.kind != Value::Kind::scalar) {
    field.wrong(value.at, instead_of("a size, as in " + format_size(least), value));
    return;
  }
  const auto size = parse_size(value.text);
  if (!size) {
    field.wrong(value.at, size.error().message);
  } else if (*size < least || *size > most) {
    field.wrong(value.at,
                "expected " + format_size(least) + " to " + format_size(most) + ", got " + in_quotes(value.text));
  } else {
    out = *size;
  }
}

Value SizeWithin::write(std::uint64_t bytes) const { return make_scalar(format_size(bytes), true); }

Form SizeWithin::form() const { return {R"("$ref": "#/$defs/size")", format_size(least), format_size(most)}; }

void PercentOrNone::read(const Value& value, const Field& field, double& out) const {
  double percent = 0;
  const bool is_scalar = value.kind == Value::Kind::scalar;
  const char* const end = value.text.data() + value.text.size();
  const auto parsed = std::from_chars(value.text.data(), end, percent, std::chars_format::fixed);
  const bool is_share =
      is_scalar && parsed.ec == std::errc() && parsed.ptr + 1 == end && *parsed.ptr == '%' && value.text.front() != '-';
  if (!is_share || !(percent == 0 || (percent >= least && percent <= 100))) {
    field.wrong(value.at, fmt::format("expected a share from {}% to 100%, or 0% for no limit, got {}", least,
                                      is_scalar ? in_quotes(value.text) : std::string(describe(value.kind))));
  } else {
    out = percent / 100;
  }
}

Value PercentOrNone::write(double ratio) const { return make_scalar(fmt::format("{:.12g}%", ratio * 100), true); }

Form PercentOrNone::form() const {
  return {R"("type": "string", "pattern": "^[0-9.]+%$")", fmt::format("{}%", least), "100%"};
}

void PathOrNone::read(const Value& value, const Field& field, std::string& out) const {
  constexpr std::string_view kExpected = "an absolute path, or \"\" for none";
  if (value.kind != Value::Kind::scalar) {
    field.wrong(value.at, instead_of(kExpected, value));
    return;
  }
  const std::string& path = value.text;
  if (!path.empty() && path.front() != '/') {
    field.wrong(value.at, in_quotes(path) + " is not absolute; expected " + std::string(kExpected));
  } else if (std::any_of(path.begin(), path.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    field.wrong(value.at, in_quotes(path) + " contains a control character; expected " + std::string(kExpected));
  } else if (path.size() > longest) {
    field.wrong(value.at, in_quotes(path) + " is too long; expected at most " + std::to_string(longest) + " bytes");
  } else {
    out = path;
  }
}

Value PathOrNone::write(const std::string& path) const { return make_scalar(path, false); }

Form PathOrNone::form() const { return {R"("type": "string", "pattern": "^(/.*)?$")"}; }

void NumberWithin::read(const Value& value, const Field& field, std::uint64_t& out) const {
  std::uint64_t number = 0;
  const bool is_scalar = value.kind == Value::Kind::scalar;
  const char* const end = value.text.data() + value.text.size();
  const auto parsed = std::from_chars(value.text.data(), end, number);
  if (!is_scalar || parsed.ec != std::errc() || parsed.ptr != end || number < least || number > most) {
    field.wrong(value.at, "expected a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                              ", got " + (is_scalar ? in_quotes(value.text) : std::string(describe(value.kind))));
  } else {
    out = number;
  }
}

Value NumberWithin::write(std::uint64_t number) const { return make_scalar(std::to_string(number), true); }

Form NumberWithin::form() const {
  return {fmt::format(R"("anyOf": [{{"type": "integer", "minimum": {}, "maximum": {}}},
                      {{"type": "string", "pattern": "^[0-9]+$"}}])",
                      least, most),
          std::to_string(least), std::to_string(most)};
}

void TenantPatterns::read(const Value& value, const Field& field, std::vector<TenantPattern>& out) const {
  constexpr std::string_view kExpected = "a list, as in [{match: \"/system.slice/mysql*\", tenant: db}]";
  if (value.kind != Value::Kind::list) {
    field.wrong(value.at, instead_of(kExpected, value));
    return;
  }
  if (value.items.size() > kMaxPatterns) {
    field.wrong(value.at, "the list is too long; expected at most " + std::to_string(kMaxPatterns) + " patterns");
    return;
  }
  std::vector<TenantPattern> patterns;
  for (const Value& item : value.items) {
    if (item.kind != Value::Kind::mapping) {
      field.wrong(item.at, instead_of("match and tenant, as in {match: \"/batch.slice/*\", tenant: batch}", item));
      continue;
    }
    TenantPattern pattern;
    visit_entries(item, {"match", "tenant"}, field.report, [&](const std::string& name, const Value& held) {
      (name == "match" ? pattern.match : pattern.tenant) = held.text;
    });
    check(item, field, pattern);
    patterns.push_back(std::move(pattern));
  }
  out = std::move(patterns);
}

Value TenantPatterns::write(const std::vector<TenantPattern>& patterns) const {
  Value value;
  value.kind = Value::Kind::list;
  for (const TenantPattern& pattern : patterns) {
    Value item;
    item.kind = Value::Kind::mapping;
    item.entries.push_back({make_scalar("match", true), make_scalar(pattern.match, false)});
    item.entries.push_back({make_scalar("tenant", true), make_scalar(pattern.tenant, false)});
    value.items.push_back(std::move(item));
  }
  return value;
}

void TenantPatterns::check(const Value& item, const Field& field, const TenantPattern& pattern) {
  const std::string& tenant = pattern.tenant;
  const auto is_odd = [](char c) { return c <= 0x20 || c >= 0x7f || c == '"' || c == ','; };
  if (pattern.match.empty() || pattern.match.size() > kLongestMatch ||
      (pattern.match.front() != '/' && pattern.match.front() != '*')) {
    field.wrong(item.at, "match: " + in_quotes(pattern.match) +
                             " matches no path of a cgroup; expected a pattern that begins with / or *, as in "
                             "\"/system.slice/mysql*\"");
  }
  if (tenant.empty() || tenant.size() > kLongestName || std::any_of(tenant.begin(), tenant.end(), is_odd)) {
    field.wrong(item.at, "tenant: " + in_quotes(tenant) + " is not a valid name; expected 1 to " +
                             std::to_string(kLongestName) + " printable characters without blanks, quotes and commas");
  } else if (tenant == "/" || tenant == "other" || tenant == "none") {
    field.wrong(item.at, "tenant: " + in_quotes(tenant) + " is reserved; expected another name");
  }
}

Form TenantPatterns::form() const { return {R"("type": "array", "items": {"$ref": "#/$defs/tenant_pattern"})"}; }

void YesOrNo::read(const Value& value, const Field& field, bool& out) const {
  if (value.kind != Value::Kind::scalar || (value.text != "true" && value.text != "false")) {
    const bool is_scalar = value.kind == Value::Kind::scalar;
    field.wrong(value.at, "expected true or false, got " +
                              (is_scalar ? in_quotes(value.text) : std::string(describe(value.kind))));
  } else {
    out = value.text == "true";
  }
}

Value YesOrNo::write(bool yes) const { return make_scalar(yes ? "true" : "false", true); }

Form YesOrNo::form() const { return {R"("type": "boolean")"}; }

void HostNames::read(const Value& value, const Field& field, std::vector<std::string>& out) const {
  constexpr std::string_view kExpected = "a list of host names, as in [\"db1.example.org\"]";
  if (value.kind != Value::Kind::list) {
    field.wrong(value.at, instead_of(kExpected, value));
    return;
  }
  std::vector<std::string> names;
  for (const Value& item : value.items) {
    const auto is_of_a_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; };
    if (item.kind != Value::Kind::scalar) {
      field.wrong(item.at, instead_of("a host name, as in \"db1.example.org\"", item));
    } else if (item.text.empty() || item.text.size() > 253 ||
               !std::all_of(item.text.begin(), item.text.end(), is_of_a_name)) {
      field.wrong(item.at, in_quotes(item.text) +
                               " is not a host name; expected one without a port, as in "
                               "\"db1.example.org\"");
    }
    names.push_back(item.text);
  }
  out = std::move(names);
}

Value HostNames::write(const std::vector<std::string>& names) const { return list_of(names); }

Form HostNames::form() const {
  return {R"("type": "array", "items": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,253}$"})"};
}

void GroupsToLeaveOut::read(const Value& value, const Field& field, std::vector<std::string>& out) const {
  if (value.kind != Value::Kind::list) {
    field.wrong(value.at, instead_of("a list of groups of metrics, as in [tenants, nvme_logs]", value));
    return;
  }
  std::vector<std::string> groups;
  for (const Value& item : value.items) {
    if (item.kind != Value::Kind::scalar || !model::metric_group(item.text)) {
      std::string expected = "expected one of";
      for (const std::string_view group : model::kMetricGroups) {
        expected += group == kSelf ? "" : " " + std::string(group);
      }
      field.wrong(item.at,
                  (item.kind == Value::Kind::scalar ? in_quotes(item.text) : std::string(describe(item.kind))) +
                      " is not a group of metrics; " + expected);
    } else if (item.text == kSelf) {
      field.wrong(item.at, "self cannot be left out: it says whether the other metrics can be trusted");
    }
    groups.push_back(item.text);
  }
  out = std::move(groups);
}

Value GroupsToLeaveOut::write(const std::vector<std::string>& groups) const { return list_of(groups); }

Form GroupsToLeaveOut::form() const {
  std::vector<std::string> groups;
  for (const std::string_view group : model::kMetricGroups) {
    if (group != kSelf) {
      groups.emplace_back(group);
    }
  }
  return {fmt::format(R"("type": "array", "items": {{{}}})", form_of_words(groups).schema), "", "", groups};
}

}  // namespace ssdpulse::config
