// SPDX-License-Identifier: Apache-2.0
// Histograms are nine tenths of a page and are written here: a stream per number made them six times as expensive.
#include "exporters/prometheus/text_format.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace ssdpulse::exposition {
namespace {

::prometheus::ClientMetric to_metric(Type type, const Sample& sample) {
  ::prometheus::ClientMetric metric;
  for (const auto& label : sample.labels) {
    metric.label.push_back({std::string(label.name), label.value});
  }
  if (type == Type::counter) {
    metric.counter.value = std::get<double>(sample.value);
  } else {
    metric.gauge.value = std::get<double>(sample.value);
  }
  return metric;
}

std::string serialize(const Family& family) {
  const auto& description = *family.description;
  const auto type =
      description.type == Type::counter ? ::prometheus::MetricType::Counter : ::prometheus::MetricType::Gauge;
  ::prometheus::MetricFamily converted{std::string(description.name), std::string(description.help), type, {}};
  for (const auto& sample : family.samples) {
    converted.metric.push_back(to_metric(description.type, sample));
  }
  return ::prometheus::TextSerializer().Serialize({std::move(converted)});
}

template <typename Number>
std::string_view in_digits(Number value, std::array<char, 32>& room) {
  const auto end = std::to_chars(room.data(), room.data() + room.size(), value).ptr;
  return {room.data(), static_cast<std::size_t>(end - room.data())};
}

void append_escaped(std::string_view value, std::string& page) {
  for (const char c : value) {
    if (c == '\\' || c == '"' || c == '\n') {
      page += '\\';
    }
    page += c == '\n' ? 'n' : c;
  }
}

/// `{a="b",`: how the lines of a sample begin, to be ended by one more label, or by a brace instead of the comma.
std::string opening(const Labels& labels) {
  std::string text = "{";
  for (const auto& label : labels) {
    text.append(label.name).append("=\"");
    append_escaped(label.value, text);
    text.append("\",");
  }
  return text;
}

/// The bounds of all histograms of one family, in digits.
std::vector<std::string> classic_bounds(const Family& family) {
  std::vector<std::string> bounds;
  std::array<char, 32> room;
  if (!family.samples.empty()) {
    for (const ClassicBucket& bucket : classic_buckets(std::get<Histogram>(family.samples.front().value))) {
      bounds.emplace_back(in_digits(bucket.upper_bound, room));
    }
  }
  return bounds;
}

void append_histogram(std::string_view name, const Sample& sample, const Histogram& histogram,
                      const std::vector<std::string>& bounds, std::string& page) {
  std::array<char, 32> room;
  const std::string open = opening(sample.labels);
  const auto append_total = [&](std::string_view suffix, auto value) {
    page.append(name).append(suffix);
    if (open.size() > 1) {
      page.append(open, 0, open.size() - 1).append("}");
    }
    page.append(" ").append(in_digits(value, room)).append("\n");
  };
  const std::string bucket = std::string(name).append("_bucket").append(open).append("le=\"");
  const auto append_bucket = [&](std::string_view bound, std::uint64_t count) {
    page.append(bucket).append(bound).append("\"} ").append(in_digits(count, room)).append("\n");
  };
  append_total("_count", histogram.count());
  append_total("_sum", histogram.sum);
  auto bound = bounds.begin();
  for (const ClassicBucket& classic : classic_buckets(histogram)) {
    append_bucket(*bound++, classic.cumulative_count);
  }
  append_bucket("+Inf", histogram.count());
}

}  // namespace

std::string render_text(const std::vector<Family>& families) {
  // Growing a page of megabytes step by step would copy it several times.
  constexpr std::size_t kBytesOfHistogram = 2560;
  constexpr std::size_t kBytesOfNumber = 128;
  std::size_t expected = 0;
  for (const auto& family : families) {
    expected +=
        family.samples.size() * (family.description->type == Type::histogram ? kBytesOfHistogram : kBytesOfNumber);
  }
  std::string page;
  page.reserve(expected);
  for (const auto& family : families) {
    const auto& description = *family.description;
    if (description.type != Type::histogram) {
      page += serialize(family);
      continue;
    }
    page.append("# HELP ").append(description.name).append(" ").append(description.help);
    page.append("\n# TYPE ").append(description.name).append(" histogram\n");
    const auto bounds = classic_bounds(family);
    for (const auto& sample : family.samples) {
      append_histogram(description.name, sample, std::get<Histogram>(sample.value), bounds, page);
    }
  }
  return page;
}

}  // namespace ssdpulse::exposition
