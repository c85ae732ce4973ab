// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/negotiation.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ssdpulse::exposition {
namespace {

// One element of Accept or Accept-Encoding.
struct Item {
  std::string name;  // media range or coding, lower case
  std::vector<std::pair<std::string, std::string>> parameters;
  double quality = 1.0;

  [[nodiscard]] std::string_view parameter(std::string_view wanted) const {
    for (const auto& [key, value] : parameters) {
      if (key == wanted) {
        return value;
      }
    }
    return {};
  }
};

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

// Takes what stands before the separator (outside quotes) off the front of `rest`.
std::string_view take_until(std::string_view& rest, char separator) {
  bool quoted = false;
  std::size_t end = 0;
  while (end < rest.size() && (quoted || rest[end] != separator)) {
    quoted ^= rest[end] == '"';
    ++end;
  }
  const auto taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return trim(taken);
}

std::string_view unquote(std::string_view value) {
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    return value.substr(1, value.size() - 2);
  }
  return value;
}

std::optional<double> parse_quality(std::string_view text) {
  double quality = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quality, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size() || !(quality >= 0 && quality <= 1)) {
    return std::nullopt;
  }
  return quality;
}

// Elements whose quality cannot be read are dropped, the others count.
std::vector<Item> parse(std::string_view header) {
  std::vector<Item> items;
  while (!header.empty()) {
    auto element = take_until(header, ',');
    Item item;
    item.name = lower(take_until(element, ';'));
    std::optional<double> quality = 1.0;
    while (!element.empty()) {
      auto value = take_until(element, ';');
      const auto key = lower(take_until(value, '='));
      if (key == "q") {
        quality = parse_quality(trim(value));
      } else {
        item.parameters.emplace_back(key, unquote(trim(value)));
      }
    }
    if (!item.name.empty() && quality) {
      item.quality = *quality;
      items.push_back(std::move(item));
    }
  }
  return items;
}

bool is_protobuf(const Item& item) {
  return item.name == "application/vnd.google.protobuf" &&
         item.parameter("proto") == "io.prometheus.client.MetricFamily" && item.parameter("encoding") == "delimited";
}

bool is_text(const Item& item) {
  const auto version = item.parameter("version");
  return item.name == "text/plain" && (version.empty() || version == "0.0.4");
}

// The best quality among the elements that match; nothing if none does.
template <typename Matches>
std::optional<double> quality_of(const std::vector<Item>& items, Matches matches) {
  std::optional<double> best;
  for (const auto& item : items) {
    if (matches(item)) {
      best = std::max(best.value_or(0), item.quality);
    }
  }
  return best;
}

auto named(std::string_view name) {
  return [name](const Item& item) { return item.name == name; };
}

}  // namespace

Format choose_format(std::string_view accept, bool native_alone) {
  const auto items = parse(accept);
  const auto protobuf = quality_of(items, is_protobuf).value_or(0);
  // The most specific range that matches decides.
  auto text = quality_of(items, is_text);
  if (!text) {
    text = quality_of(items, named("text/*"));
  }
  if (!text) {
    text = quality_of(items, named("*/*"));
  }
  if (protobuf <= 0 || protobuf < text.value_or(0)) {
    return Format::text;
  }
  return native_alone ? Format::native_protobuf : Format::protobuf;
}

bool prefers_gzip(std::string_view accept_encoding) {
  const auto items = parse(accept_encoding);
  auto gzip = quality_of(items, [](const Item& item) { return item.name == "gzip" || item.name == "x-gzip"; });
  if (!gzip) {
    gzip = quality_of(items, named("*"));
  }
  const auto identity = quality_of(items, named("identity")).value_or(0);
  return gzip.value_or(0) > 0 && *gzip >= identity;
}

}  // namespace ssdpulse::exposition
