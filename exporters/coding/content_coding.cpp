// SPDX-License-Identifier: Apache-2.0
#include "exporters/coding/content_coding.h"

#include <libdeflate.h>

#include <charconv>
#include <memory>

namespace ssdpulse::coding {
namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

// Takes the text before the separator (outside quotes) off the front of `rest`.
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
  const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
  return quoted ? value.substr(1, value.size() - 2) : value;
}

std::optional<double> parse_quality(std::string_view text) {
  double quality = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quality, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + text.size() || !(quality >= 0 && quality <= 1)) {
    return std::nullopt;
  }
  return quality;
}

}  // namespace

std::string_view AcceptItem::parameter(std::string_view wanted) const {
  for (const auto& [key, value] : parameters) {
    if (key == wanted) {
      return value;
    }
  }
  return {};
}

std::vector<AcceptItem> parse_accept(std::string_view header) {
  std::vector<AcceptItem> items;
  while (!header.empty()) {
    auto element = take_until(header, ',');
    AcceptItem item;
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

bool prefers_gzip(std::string_view accept_encoding) {
  const auto items = parse_accept(accept_encoding);
  auto gzip = quality_of(items, [](const AcceptItem& item) { return item.name == "gzip" || item.name == "x-gzip"; });
  if (!gzip) {
    gzip = quality_of(items, named("*"));
  }
  const auto identity = quality_of(items, named("identity")).value_or(0);
  return gzip.value_or(0) > 0 && *gzip >= identity;
}

std::optional<std::string> gzip(const std::string& bytes, Effort effort) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(static_cast<int>(effort)), libdeflate_free_compressor);
  if (!compressor) {
    return std::nullopt;
  }
  std::string result(libdeflate_gzip_compress_bound(compressor.get(), bytes.size()), '\0');
  result.resize(libdeflate_gzip_compress(compressor.get(), bytes.data(), bytes.size(), result.data(), result.size()));
  result.shrink_to_fit();
  return result.empty() ? std::nullopt : std::optional(std::move(result));
}

}  // namespace ssdpulse::coding
