// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/metric_formats.h"

#include <prometheus/text_serializer.h>

#include <array>
#include <charconv>
#include <chrono>
#include <iterator>
#include <protozero/pbf_builder.hpp>
#include <protozero/varint.hpp>
#include <string_view>
#include <utility>

#include "exporters/coding/content_coding.h"

namespace ssdpulse::exposition {
namespace {

using Item = coding::AcceptItem;

bool is_protobuf(const Item& item) {
  return item.name == "application/vnd.google.protobuf" &&
         item.parameter("proto") == "io.prometheus.client.MetricFamily" && item.parameter("encoding") == "delimited";
}

bool is_text(const Item& item) {
  const auto version = item.parameter("version");
  return item.name == "text/plain" && (version.empty() || version == "0.0.4");
}

}  // namespace

Format choose_format(std::string_view accept, bool native_alone) {
  const auto items = coding::parse_accept(accept);
  const auto protobuf = coding::quality_of(items, is_protobuf).value_or(0);
  // The most specific range that matches decides.
  auto text = coding::quality_of(items, is_text);
  if (!text) {
    text = coding::quality_of(items, coding::named("text/*"));
  }
  if (!text) {
    text = coding::quality_of(items, coding::named("*/*"));
  }
  if (protobuf <= 0 || protobuf < text.value_or(0)) {
    return Format::text;
  }
  return native_alone ? Format::native_protobuf : Format::protobuf;
}

// Histograms are nine tenths of a page and are written here: a stream per number made them six times as expensive.

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

NativeBuckets native_buckets(std::span<const std::uint64_t> counts, std::int32_t first_index) {
  NativeBuckets result;
  std::int64_t previous = 0;
  std::int32_t gap = first_index;  // an index at first, relative to the end of the last span afterwards
  bool in_span = false;
  for (const std::uint64_t count : counts) {
    if (count == 0) {
      // After an open span, the gap counts from its end.
      gap = in_span ? 1 : gap + 1;
      in_span = false;
      continue;
    }
    if (in_span) {
      ++result.spans.back().length;
    } else {
      result.spans.push_back({gap, 1});
      in_span = true;
    }
    const auto value = static_cast<std::int64_t>(count);
    result.deltas.push_back(value - previous);
    previous = value;
  }
  return result;
}

// Field numbers are those of the published io/prometheus/client/metrics.proto.

namespace {

enum class FamilyField : protozero::pbf_tag_type { name = 1, help = 2, type = 3, metric = 4, unit = 5 };
enum class MetricField : protozero::pbf_tag_type { label = 1, gauge = 2, counter = 3, histogram = 7 };
enum class LabelField : protozero::pbf_tag_type { name = 1, value = 2 };
enum class GaugeField : protozero::pbf_tag_type { value = 1 };
enum class CounterField : protozero::pbf_tag_type { value = 1, created_timestamp = 3 };
enum class HistogramField : protozero::pbf_tag_type {
  sample_count = 1,
  sample_sum = 2,
  bucket = 3,
  schema = 5,
  zero_threshold = 6,
  zero_count = 7,
  positive_span = 12,
  positive_delta = 13,
  created_timestamp = 15
};
enum class BucketField : protozero::pbf_tag_type { cumulative_count = 1, upper_bound = 2 };
enum class SpanField : protozero::pbf_tag_type { offset = 1, length = 2 };
enum class TimestampField : protozero::pbf_tag_type { seconds = 1, nanos = 2 };

std::int32_t to_type(Type type) {
  switch (type) {
    case Type::counter:
      return 0;
    case Type::gauge:
      return 1;
    case Type::histogram:
      return 4;
  }
  return 3;  // UNTYPED
}

template <typename Field>
void add_created(protozero::pbf_builder<Field>& parent, const std::optional<model::WallTime>& created) {
  if (!created) {
    return;
  }
  const auto seconds = std::chrono::floor<std::chrono::seconds>(*created);
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(*created - seconds);
  protozero::pbf_builder<TimestampField> timestamp(parent, Field::created_timestamp);
  timestamp.add_int64(TimestampField::seconds, seconds.time_since_epoch().count());
  timestamp.add_int32(TimestampField::nanos, static_cast<std::int32_t>(nanos.count()));
}

void add_histogram(protozero::pbf_builder<MetricField>& metric, const Sample& sample, const Histogram& histogram,
                   Buckets buckets) {
  protozero::pbf_builder<HistogramField> out(metric, MetricField::histogram);
  out.add_uint64(HistogramField::sample_count, histogram.count());
  out.add_double(HistogramField::sample_sum, histogram.sum);
  if (buckets == Buckets::native_and_classic) {
    for (const auto& classic : classic_buckets(histogram)) {
      protozero::pbf_builder<BucketField> bucket(out, HistogramField::bucket);
      bucket.add_uint64(BucketField::cumulative_count, classic.cumulative_count);
      bucket.add_double(BucketField::upper_bound, classic.upper_bound);
    }
  }
  // A threshold above zero is what distinguishes an empty native histogram from a classic one.
  out.add_sint32(HistogramField::schema, histogram.scale->schema);
  out.add_double(HistogramField::zero_threshold, kZeroThreshold);
  out.add_uint64(HistogramField::zero_count, histogram.zero_count);
  const auto native = native_buckets(histogram.counts, histogram.scale->first_index);
  for (const auto& run : native.spans) {
    protozero::pbf_builder<SpanField> span(out, HistogramField::positive_span);
    span.add_sint32(SpanField::offset, run.offset);
    span.add_uint32(SpanField::length, run.length);
  }
  out.add_packed_sint64(HistogramField::positive_delta, native.deltas.begin(), native.deltas.end());
  add_created(out, sample.created);
}

void add_metric(protozero::pbf_builder<FamilyField>& family, Type type, const Sample& sample, Buckets buckets) {
  protozero::pbf_builder<MetricField> metric(family, FamilyField::metric);
  for (const auto& label : sample.labels) {
    protozero::pbf_builder<LabelField> pair(metric, MetricField::label);
    pair.add_string(LabelField::name, label.name.data(), label.name.size());
    pair.add_string(LabelField::value, label.value);
  }
  if (const auto* histogram = std::get_if<Histogram>(&sample.value)) {
    add_histogram(metric, sample, *histogram, buckets);
  } else if (type == Type::counter) {
    protozero::pbf_builder<CounterField> counter(metric, MetricField::counter);
    counter.add_double(CounterField::value, std::get<double>(sample.value));
    add_created(counter, sample.created);
  } else {
    protozero::pbf_builder<GaugeField> gauge(metric, MetricField::gauge);
    gauge.add_double(GaugeField::value, std::get<double>(sample.value));
  }
}

std::string to_message(const Family& family, Buckets buckets) {
  const auto& description = *family.description;
  std::string message;
  protozero::pbf_builder<FamilyField> out(message);
  out.add_string(FamilyField::name, description.name.data(), description.name.size());
  out.add_string(FamilyField::help, description.help.data(), description.help.size());
  out.add_enum(FamilyField::type, to_type(description.type));
  for (const auto& sample : family.samples) {
    add_metric(out, description.type, sample, buckets);
  }
  if (!description.unit.empty()) {
    out.add_string(FamilyField::unit, description.unit.data(), description.unit.size());
  }
  return message;
}

}  // namespace

std::string render_protobuf(const std::vector<Family>& families, Buckets buckets) {
  std::string page;
  for (const auto& family : families) {
    const auto message = to_message(family, buckets);
    protozero::write_varint(std::back_inserter(page), message.size());
    page += message;
  }
  return page;
}

}  // namespace ssdpulse::exposition
