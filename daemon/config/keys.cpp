// SPDX-License-Identifier: Apache-2.0
// The table of keys, and the kinds of value they hold. A kind reads a Value into a field and writes it back.
#include "daemon/config/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <system_error>

#include "daemon/config/device_pattern.h"
#include "daemon/config/entries.h"
#include "daemon/config/listen_address.h"
#include "daemon/config/units.h"
#include "daemon/model/metric_groups.h"

namespace ssdpulse::config {
namespace {

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

/// One address, or a list of at least one, each once.
struct ListenAddresses {
  void read(const Value& value, const Field& field, std::vector<std::string>& out) const {
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
  [[nodiscard]] Value write(const std::vector<std::string>& texts) const { return list_of(texts); }
};

/// A list of shell globs on device names.
struct Patterns {
  std::size_t at_least = 0;

  void read(const Value& value, const Field& field, std::vector<std::string>& out) const {
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
      } else if (const auto flaw = flaw_of_device_pattern(item.text)) {
        field.wrong(item.at, in_quotes(item.text) + " " + *flaw + "; expected a pattern, as in \"nvme*\"");
      }
      globs.push_back(item.text);
    }
    out = std::move(globs);
  }
  [[nodiscard]] Value write(const std::vector<std::string>& globs) const { return list_of(globs); }
};

/// One word out of a few, each standing for a value of an enumeration.
template <typename Enum, std::size_t N>
struct OneOf {
  std::array<std::pair<std::string_view, Enum>, N> words;

  void read(const Value& value, const Field& field, Enum& out) const {
    std::string expected = "expected ";
    for (std::size_t i = 0; i < N; ++i) {
      if (value.kind == Value::Kind::scalar && value.text == words[i].first) {
        out = words[i].second;
        return;
      }
      expected += (i == 0 ? "" : i + 1 == N ? " or " : ", ") + std::string(words[i].first);
    }
    const bool is_scalar = value.kind == Value::Kind::scalar;
    field.wrong(value.at,
                expected + ", got " + (is_scalar ? in_quotes(value.text) : std::string(describe(value.kind))));
  }
  [[nodiscard]] Value write(Enum wanted) const {
    for (const auto& word : words) {
      if (word.second == wanted) {
        return make_scalar(word.first, true);
      }
    }
    return {};
  }
};

constexpr OneOf<LatencyMode, 2> kLatencyModes{
    {{{"full", LatencyMode::full}, {"completion-only", LatencyMode::completion_only}}}};

constexpr OneOf<MetricsProfile, 2> kMetricsProfiles{
    {{{"full", MetricsProfile::full}, {"fleet", MetricsProfile::fleet}}}};

constexpr OneOf<TenantNames, 3> kTenantNames{
    {{{"full", TenantNames::full}, {"hashed", TenantNames::hashed}, {"off", TenantNames::off}}}};

constexpr OneOf<PageHints, 3> kPageHints{
    {{{"auto", PageHints::automatic}, {"always", PageHints::always}, {"never", PageHints::never}}}};

/// A duration with its unit, within a range.
struct DurationWithin {
  std::chrono::nanoseconds least;
  std::chrono::nanoseconds most;

  void read(const Value& value, const Field& field, std::chrono::nanoseconds& out) const {
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
  [[nodiscard]] Value write(std::chrono::nanoseconds duration) const {
    return make_scalar(format_duration(duration), true);
  }
};

constexpr OneOf<std::uint32_t, 9> kSamples{{{{"auto", 0},
                                             {"1/1", 1},
                                             {"1/2", 2},
                                             {"1/4", 4},
                                             {"1/8", 8},
                                             {"1/16", 16},
                                             {"1/32", 32},
                                             {"1/64", 64},
                                             {"1/128", 128}}}};

/// A number of bytes with its unit, within a range.
struct SizeWithin {
  std::uint64_t least;
  std::uint64_t most;

  void read(const Value& value, const Field& field, std::uint64_t& out) const {
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
  [[nodiscard]] Value write(std::uint64_t bytes) const { return make_scalar(format_size(bytes), true); }
};

/// A share in percent; 0% for none.
struct PercentOrNone {
  double least;  // other than none

  void read(const Value& value, const Field& field, double& out) const {
    double percent = 0;
    const bool is_scalar = value.kind == Value::Kind::scalar;
    const char* const end = value.text.data() + value.text.size();
    const auto parsed = std::from_chars(value.text.data(), end, percent, std::chars_format::fixed);
    const bool is_share = is_scalar && parsed.ec == std::errc() && parsed.ptr + 1 == end && *parsed.ptr == '%' &&
                          value.text.front() != '-';
    if (!is_share || !(percent == 0 || (percent >= least && percent <= 100))) {
      field.wrong(value.at, fmt::format("expected a share from {}% to 100%, or 0% for no limit, got {}", least,
                                        is_scalar ? in_quotes(value.text) : std::string(describe(value.kind))));
    } else {
      out = percent / 100;
    }
  }
  [[nodiscard]] Value write(double ratio) const { return make_scalar(fmt::format("{:.12g}%", ratio * 100), true); }
};

/// An absolute path, or an empty text for "none".
struct PathOrNone {
  std::size_t longest = 4000;  // PATH_MAX less what is added to it

  void read(const Value& value, const Field& field, std::string& out) const {
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
  [[nodiscard]] Value write(const std::string& path) const { return make_scalar(path, false); }
};

/// A whole number within a range.
struct NumberWithin {
  std::uint64_t least;
  std::uint64_t most;

  void read(const Value& value, const Field& field, std::uint64_t& out) const {
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
  [[nodiscard]] Value write(std::uint64_t number) const { return make_scalar(std::to_string(number), true); }
};

/// A list of mappings, each with a pattern and a name.
struct TenantPatterns {
  static constexpr std::size_t kMost = 1000;  // each is tried for each new cgroup
  static constexpr std::size_t kLongestName = 128;
  static constexpr std::size_t kLongestMatch = 4096;

  void read(const Value& value, const Field& field, std::vector<TenantPattern>& out) const {
    constexpr std::string_view kExpected = "a list, as in [{match: \"/system.slice/mysql*\", tenant: db}]";
    if (value.kind != Value::Kind::list) {
      field.wrong(value.at, instead_of(kExpected, value));
      return;
    }
    if (value.items.size() > kMost) {
      field.wrong(value.at, "the list is too long; expected at most " + std::to_string(kMost) + " patterns");
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
  [[nodiscard]] Value write(const std::vector<TenantPattern>& patterns) const {
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

 private:
  static void check(const Value& item, const Field& field, const TenantPattern& pattern) {
    const std::string& tenant = pattern.tenant;
    const auto is_odd = [](char c) { return c <= 0x20 || c >= 0x7f || c == '"' || c == ','; };
    if (pattern.match.empty() || pattern.match.size() > kLongestMatch ||
        (pattern.match.front() != '/' && pattern.match.front() != '*')) {
      field.wrong(item.at, "match: " + in_quotes(pattern.match) +
                               " matches no path of a cgroup; expected a pattern that begins with / or *, as in "
                               "\"/system.slice/mysql*\"");
    }
    if (tenant.empty() || tenant.size() > kLongestName || std::any_of(tenant.begin(), tenant.end(), is_odd)) {
      field.wrong(item.at, "tenant: " + in_quotes(tenant) + " is no name; expected 1 to " +
                               std::to_string(kLongestName) +
                               " printable characters without blanks, quotes and commas");
    } else if (tenant == "/" || tenant == "other" || tenant == "none") {
      field.wrong(item.at, "tenant: " + in_quotes(tenant) + " has a meaning of its own; expected another name");
    }
  }
};

/// true or false.
struct YesOrNo {
  void read(const Value& value, const Field& field, bool& out) const {
    if (value.kind != Value::Kind::scalar || (value.text != "true" && value.text != "false")) {
      const bool is_scalar = value.kind == Value::Kind::scalar;
      field.wrong(value.at, "expected true or false, got " +
                                (is_scalar ? in_quotes(value.text) : std::string(describe(value.kind))));
    } else {
      out = value.text == "true";
    }
  }
  [[nodiscard]] Value write(bool yes) const { return make_scalar(yes ? "true" : "false", true); }
};

/// A list of names of hosts, as browsers send them: without a port.
struct HostNames {
  void read(const Value& value, const Field& field, std::vector<std::string>& out) const {
    constexpr std::string_view kExpected = "a list of host names, as in [\"db1.example.org\"]";
    if (value.kind != Value::Kind::list) {
      field.wrong(value.at, instead_of(kExpected, value));
      return;
    }
    std::vector<std::string> names;
    for (const Value& item : value.items) {
      const auto is_of_a_name = [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
      };
      if (item.kind != Value::Kind::scalar) {
        field.wrong(item.at, instead_of("a host name, as in \"db1.example.org\"", item));
      } else if (item.text.empty() || item.text.size() > 253 ||
                 !std::all_of(item.text.begin(), item.text.end(), is_of_a_name)) {
        field.wrong(item.at, in_quotes(item.text) +
                                 " is no host name; expected one without a port, as in "
                                 "\"db1.example.org\"");
      }
      names.push_back(item.text);
    }
    out = std::move(names);
  }
  [[nodiscard]] Value write(const std::vector<std::string>& names) const { return list_of(names); }
};

/// A list of metric groups. The group that shows how far the others can be trusted is never left out.
struct GroupsToLeaveOut {
  void read(const Value& value, const Field& field, std::vector<std::string>& out) const {
    constexpr std::string_view kSelf = "self";
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
                        " is no group of metrics; " + expected);
      } else if (item.text == kSelf) {
        field.wrong(item.at, "self cannot be left out: it says whether the other metrics can be trusted");
      }
      groups.push_back(item.text);
    }
    out = std::move(groups);
  }
  [[nodiscard]] Value write(const std::vector<std::string>& groups) const { return list_of(groups); }
};

enum class Takes : std::uint8_t { reload, restart };  // what it takes for a change of the key to take effect

template <typename Section, typename Held, typename Kind>
Key key(std::string section, std::string name, Section Config::*in, Held Section::*at, Kind kind, Takes takes) {
  return {std::move(section),
          std::move(name),
          takes == Takes::restart,
          [=](const Value& value, const Field& field, Config& config) { kind.read(value, field, config.*in.*at); },
          [=](const Config& config) { return kind.write(config.*in.*at); },
          [=](const Config& a, const Config& b) { return a.*in.*at == b.*in.*at; }};
}

}  // namespace

const std::vector<Key>& keys() {
  using namespace std::chrono_literals;
  // Never destroyed: a thread that reads the configuration may outlast main.
  static const auto& table = *new std::vector<Key>{
      key("web", "listen_address", &Config::web, &Web::listen_address, ListenAddresses{}, Takes::restart),
      key("web", "config_file", &Config::web, &Web::config_file, PathOrNone{}, Takes::restart),
      key("web", "socket", &Config::web, &Web::socket, PathOrNone{kLongestSocketPath}, Takes::restart),
      key("web", "page", &Config::web, &Web::page, YesOrNo{}, Takes::restart),
      key("web", "hosts", &Config::web, &Web::hosts, HostNames{}, Takes::restart),
      key("metrics", "profile", &Config::metrics, &Metrics::profile, kMetricsProfiles, Takes::restart),
      key("metrics", "exclude", &Config::metrics, &Metrics::exclude, GroupsToLeaveOut{}, Takes::restart),
      key("devices", "include", &Config::devices, &Devices::include, Patterns{.at_least = 1}, Takes::reload),
      key("devices", "exclude", &Config::devices, &Devices::exclude, Patterns{}, Takes::reload),
      key("latency", "mode", &Config::latency, &Latency::mode, kLatencyModes, Takes::restart),
      key("nvme", "poll_interval", &Config::nvme, &Nvme::poll_interval, DurationWithin{10s, 1h}, Takes::reload),
      key("nvme", "reader_socket", &Config::nvme, &Nvme::reader_socket, PathOrNone{kLongestSocketPath}, Takes::restart),
      key("discard", "burst_gap", &Config::discard, &Discard::burst_gap, DurationWithin{1s, 1h}, Takes::reload),
      key("writes", "page_hints", &Config::writes, &Writes::page_hints, kPageHints, Takes::restart),
      key("spikes", "floor", &Config::spikes, &Spikes::floor, DurationWithin{100us, 10s}, Takes::reload),
      key("attribution", "enabled", &Config::attribution, &Attribution::enabled, YesOrNo{}, Takes::restart),
      key("attribution", "tenants", &Config::attribution, &Attribution::tenants, NumberWithin{1, 1024}, Takes::restart),
      key("attribution", "names", &Config::attribution, &Attribution::names, kTenantNames, Takes::restart),
      key("attribution", "patterns", &Config::attribution, &Attribution::patterns, TenantPatterns{}, Takes::restart),
      key("flash_model", "enabled", &Config::flash_model, &FlashModel::enabled, YesOrNo{}, Takes::restart),
      key("flash_model", "memory", &Config::flash_model, &FlashModel::memory_bytes,
          SizeWithin{std::uint64_t{4} << 20, std::uint64_t{4} << 30}, Takes::restart),
      key("flash_model", "virtual_disks", &Config::flash_model, &FlashModel::virtual_disks, YesOrNo{}, Takes::restart),
      key("flash_model", "sample", &Config::flash_model, &FlashModel::sample, kSamples, Takes::restart),
      key("limits", "cpu", &Config::limits, &Limits::cpu_ratio, PercentOrNone{.least = 0.0001}, Takes::reload),
      key("limits", "after", &Config::limits, &Limits::after, DurationWithin{1s, 1h}, Takes::reload),
      key("history", "directory", &Config::history, &History::directory, PathOrNone{}, Takes::restart),
      key("history", "retention", &Config::history, &History::retention, DurationWithin{24h, 3650 * 24h},
          Takes::restart),
      key("history", "size", &Config::history, &History::size, SizeWithin{16ULL << 20U, 1ULL << 40U}, Takes::restart),
  };
  return table;
}

}  // namespace ssdpulse::config
