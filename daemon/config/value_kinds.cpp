// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/value_kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <map>
#include <system_error>

#include "daemon/config/value_text.h"
#include "daemon/model/metric_groups.h"

namespace ssdpulse::config {
namespace {

using Kind = Value::Kind;

constexpr auto kShares =
    std::to_array<const char*>({"auto", "1/1", "1/2", "1/4", "1/8", "1/16", "1/32", "1/64", "1/128"});

Value list_of(const std::vector<std::string>& texts) {
  Value value(Kind::list);
  for (const std::string& text : texts) {
    value.items.push_back(make_scalar(text, false));
  }
  return value;
}

/// The kinds of quantity: how each is read and written, and what it is called.
auto quantity_in(std::string_view text, std::chrono::nanoseconds /*kind*/) { return parse_duration(text); }
auto quantity_in(std::string_view text, std::uint64_t /*kind*/) { return parse_size(text); }
std::string text_of(std::chrono::nanoseconds duration) { return format_duration(duration); }
std::string text_of(std::uint64_t bytes) { return format_size(bytes); }
std::string_view noun(std::chrono::nanoseconds /*kind*/) { return "duration"; }
std::string_view noun(std::uint64_t /*kind*/) { return "size"; }

std::optional<std::string> validate_pattern(const Value& element) {
  if (element.kind != Kind::scalar) {
    return "expected a pattern, as in \"nvme*\", got " + in_quotes(element);
  }
  const auto flaw = validate_device_pattern(element.text);
  return flaw ? std::optional(in_quotes(element) + " " + *flaw + "; expected a pattern, as in \"nvme*\"")
              : std::nullopt;
}

std::optional<std::string> validate_host_name(const Value& element) {
  constexpr std::size_t kMaxHostName = 253;
  if (element.kind != Kind::scalar) {
    return "expected a host name, as in \"db1.example.org\", got " + in_quotes(element);
  }
  const auto is_allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; };
  const std::string& name = element.text;
  if (name.empty() || name.size() > kMaxHostName || !std::all_of(name.begin(), name.end(), is_allowed)) {
    return in_quotes(element) + " is not a host name; expected one without a port, as in \"db1.example.org\"";
  }
  return std::nullopt;
}

constexpr std::string_view kSelf = "self";

std::vector<std::string> optional_metric_groups() {
  std::vector<std::string> groups(model::kMetricGroups.begin(), model::kMetricGroups.end());
  std::erase(groups, kSelf);
  return groups;
}

std::optional<std::string> validate_group_to_leave_out(const Value& element) {
  if (element.kind != Kind::scalar || !model::metric_group(element.text)) {
    return in_quotes(element) + " is not a group of metrics; expected one of " + joined(optional_metric_groups(), " ");
  }
  if (element.text == kSelf) {
    return "self cannot be left out: it says whether the other metrics can be trusted";
  }
  return std::nullopt;
}

void validate(const TenantPattern& pattern, const Value& item, const Field& field) {
  const auto& [match, tenant] = pattern;
  const auto is_odd = [](char c) { return c <= 0x20 || c >= 0x7f || c == '"' || c == ','; };
  if (match.empty() || match.size() > TenantPatterns::kMaxMatchBytes || (match[0] != '/' && match[0] != '*')) {
    field.wrong(item, "match: " + in_quotes(match) +
                          " matches no path of a cgroup; expected a pattern that begins with / or *, as in "
                          "\"/system.slice/mysql*\"");
  }
  if (tenant.empty() || tenant.size() > TenantPatterns::kMaxNameBytes ||
      std::any_of(tenant.begin(), tenant.end(), is_odd)) {
    field.wrong(item, fmt::format("tenant: {} is not a valid name; expected 1 to {} printable characters without "
                                  "blanks, quotes and commas",
                                  in_quotes(tenant), TenantPatterns::kMaxNameBytes));
  } else if (tenant == "/" || tenant == "other" || tenant == "none") {
    field.wrong(item, "tenant: " + in_quotes(tenant) + " is reserved; expected another name");
  }
}

}  // namespace

void YesOrNo::read(const Value& value, const Field& field, bool& out) const {
  if (value.kind != Kind::scalar || (value.text != "true" && value.text != "false")) {
    field.wrong(value, "expected true or false, got " + in_quotes(value));
  } else {
    out = value.text == "true";
  }
}

Value YesOrNo::write(bool yes) const { return make_scalar(yes ? "true" : "false", true); }

Form YesOrNo::form() const { return {R"("type": "boolean")"}; }

void NumberWithin::read(const Value& value, const Field& field, std::uint64_t& out) const {
  std::uint64_t number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto parsed = std::from_chars(value.text.data(), end, number);
  if (value.kind != Kind::scalar || parsed.ec != std::errc() || parsed.ptr != end || number < min || number > max) {
    field.wrong(value, fmt::format("expected a whole number from {} to {}, got {}", min, max, in_quotes(value)));
  } else {
    out = number;
  }
}

Value NumberWithin::write(std::uint64_t number) const { return make_scalar(std::to_string(number), true); }

Form NumberWithin::form() const {
  return {fmt::format(R"("anyOf": [{{"type": "integer", "minimum": {}, "maximum": {}}},
                      {{"type": "string", "pattern": "^[0-9]+$"}}])",
                      min, max),
          std::to_string(min), std::to_string(max)};
}

template <typename Quantity>
void QuantityWithin<Quantity>::read(const Value& value, const Field& field, Quantity& out) const {
  if (!field.expect(Kind::scalar, value, fmt::format("a {}, as in {}", noun(min), text_of(min)))) {
    return;
  }
  const auto quantity = quantity_in(value.text, min);
  if (!quantity) {
    field.wrong(value, quantity.error().message);
  } else if (*quantity < min || *quantity > max) {
    field.wrong(value, fmt::format("expected {} to {}, got {}", text_of(min), text_of(max), in_quotes(value)));
  } else {
    out = *quantity;
  }
}

template <typename Quantity>
Value QuantityWithin<Quantity>::write(Quantity quantity) const {
  return make_scalar(text_of(quantity), true);
}

template <typename Quantity>
Form QuantityWithin<Quantity>::form() const {
  return {fmt::format(R"("$ref": "#/$defs/{}")", noun(min)), text_of(min), text_of(max)};
}

template struct QuantityWithin<std::chrono::nanoseconds>;
template struct QuantityWithin<std::uint64_t>;

void PercentOrNone::read(const Value& value, const Field& field, double& out) const {
  double percent = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto parsed = std::from_chars(value.text.data(), end, percent, std::chars_format::fixed);
  const bool is_share = value.kind == Kind::scalar && parsed.ec == std::errc() && parsed.ptr + 1 == end &&
                        *parsed.ptr == '%' && value.text.front() != '-';
  if (!is_share || !(percent == 0 || (percent >= min && percent <= 100))) {
    field.wrong(value,
                fmt::format("expected a share from {}% to 100%, or 0% for no limit, got {}", min, in_quotes(value)));
  } else {
    out = percent / 100;
  }
}

Value PercentOrNone::write(double ratio) const { return make_scalar(fmt::format("{:.12g}%", ratio * 100), true); }

Form PercentOrNone::form() const {
  return {R"("type": "string", "pattern": "^[0-9.]+%$")", fmt::format("{}%", min), "100%"};
}

std::optional<std::size_t> read_choice(const Value& value, const Field& field, const Form& choices) {
  const auto& values = choices.values;
  const auto found = std::find(values.begin(), values.end(), value.text);
  if (value.kind != Kind::scalar || found == values.end()) {
    field.wrong(value, "expected " + joined(values, ", ", " or ") + ", got " + in_quotes(value));
    return std::nullopt;
  }
  return static_cast<std::size_t>(found - values.begin());
}

Form form_of_choice(const std::vector<std::string>& values) {
  return {.schema = fmt::format(R"("type": "string", "enum": ["{}"])", fmt::join(values, "\", \"")), .values = values};
}

void SampleShare::read(const Value& value, const Field& field, std::uint32_t& out) const {
  if (const auto chosen = read_choice(value, field, form())) {
    out = *chosen == 0 ? 0 : 1U << (*chosen - 1);
  }
}

Value SampleShare::write(std::uint32_t one_in) const {
  return make_scalar(kShares.at(static_cast<std::size_t>(std::bit_width(one_in))), true);
}

Form SampleShare::form() const { return form_of_choice({kShares.begin(), kShares.end()}); }

void PathOrNone::read(const Value& value, const Field& field, std::string& out) const {
  const std::string expected = "an absolute path, or \"\" for none";
  if (!field.expect(Kind::scalar, value, expected)) {
    return;
  }
  const std::string& path = value.text;
  if (!path.empty() && path.front() != '/') {
    field.wrong(value, in_quotes(path) + " is not absolute; expected " + expected);
  } else if (has_control_character(path)) {
    field.wrong(value, in_quotes(path) + " contains a control character; expected " + expected);
  } else if (path.size() > max_bytes) {
    field.wrong(value, in_quotes(path) + " is too long; expected at most " + std::to_string(max_bytes) + " bytes");
  } else {
    out = path;
  }
}

Value PathOrNone::write(const std::string& path) const { return make_scalar(path, false); }

Form PathOrNone::form() const { return {R"("type": "string", "pattern": "^(/.*)?$")"}; }

void TextList::read(const Value& value, const Field& field, std::vector<std::string>& out) const {
  if (!field.expect(Kind::list, value, expected)) {
    return;
  }
  if (value.items.empty() && !may_be_empty) {
    field.wrong(value, "the list is empty; expected at least one pattern, \"*\" for every device");
    return;
  }
  out.clear();
  for (const Value& item : value.items) {
    if (const auto flaw = validate(item)) {
      field.wrong(item, *flaw);
    }
    out.push_back(item.text);
  }
}

Value TextList::write(const std::vector<std::string>& texts) const { return list_of(texts); }

Form TextList::form() const {
  Form form = element;
  form.schema =
      fmt::format(R"("type": "array", {}"items": {{{}}})", may_be_empty ? "" : R"("minItems": 1, )", element.schema);
  return form;
}

TextList device_patterns(bool may_be_empty) {
  return {.expected = R"(a list of patterns, as in ["nvme*", "sd*"])",
          .validate = validate_pattern,
          .element = {R"("$ref": "#/$defs/pattern")"},
          .may_be_empty = may_be_empty};
}

TextList host_names() {
  return {.expected = R"(a list of host names, as in ["db1.example.org"])",
          .validate = validate_host_name,
          .element = {R"("type": "string", "pattern": "^[A-Za-z0-9._-]{1,253}$")"}};
}

TextList groups_to_leave_out() {
  return {.expected = "a list of groups of metrics, as in [tenants, nvme_logs]",
          .validate = validate_group_to_leave_out,
          .element = form_of_choice(optional_metric_groups())};
}

void ListenAddresses::read(const Value& value, const Field& field, std::vector<std::string>& out) const {
  const bool is_single = value.kind == Kind::scalar;
  if (!is_single && (value.kind != Kind::list || value.items.empty())) {
    const std::string got = value.kind == Kind::list ? "an empty list" : std::string(describe(value.kind));
    field.wrong(value, "expected an address (HOST:PORT, [IPV6]:PORT or :PORT) or a list of them, got " + got);
    return;
  }
  out.clear();
  std::map<std::string, int> first_lines;
  for (const Value& item : is_single ? std::vector<Value>{value} : value.items) {
    if (!field.expect(Kind::scalar, item, "HOST:PORT, [IPV6]:PORT or :PORT")) {
      continue;
    }
    const auto address = parse_listen_address(item.text);
    if (!address) {
      field.wrong(item, address.error().message);
      continue;
    }
    const auto [first, is_new] = first_lines.emplace(to_string(*address), item.at.line);
    if (!is_new) {
      field.wrong(item, in_quotes(item) + " is given twice, first on line " + std::to_string(first->second) +
                            "; expected each address once");
    }
    out.push_back(item.text);
  }
}

Value ListenAddresses::write(const std::vector<std::string>& texts) const { return list_of(texts); }

Value ListenAddresses::shown(const std::vector<std::string>& texts) const {
  return texts.size() == 1 ? make_scalar(texts.front(), false) : write(texts);
}

Form ListenAddresses::form() const {
  return {R"("anyOf": [{"$ref": "#/$defs/address"},
             {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/$defs/address"}}])"};
}

void TenantPatterns::read(const Value& value, const Field& field, std::vector<TenantPattern>& out) const {
  if (!field.expect(Kind::list, value, R"(a list, as in [{match: "/system.slice/mysql*", tenant: db}])")) {
    return;
  }
  if (value.items.size() > kMaxPatterns) {
    field.wrong(value, "the list is too long; expected at most " + std::to_string(kMaxPatterns) + " patterns");
    return;
  }
  out.clear();
  for (const Value& item : value.items) {
    if (!field.expect(Kind::mapping, item, R"(match and tenant, as in {match: "/batch.slice/*", tenant: batch})")) {
      continue;
    }
    TenantPattern& pattern = out.emplace_back();
    visit_entries(item, {"match", "tenant"}, field.report, [&](const std::string& name, const Value& text) {
      (name == "match" ? pattern.match : pattern.tenant) = text.text;
    });
    validate(pattern, item, field);
  }
}

Value TenantPatterns::write(const std::vector<TenantPattern>& patterns) const {
  Value value(Kind::list);
  for (const TenantPattern& pattern : patterns) {
    Value& item = value.items.emplace_back(Kind::mapping);
    item.entries.push_back({make_scalar("match", true), make_scalar(pattern.match, false)});
    item.entries.push_back({make_scalar("tenant", true), make_scalar(pattern.tenant, false)});
  }
  return value;
}

Form TenantPatterns::form() const { return {R"("type": "array", "items": {"$ref": "#/$defs/tenant_pattern"})"}; }

}  // namespace ssdpulse::config
