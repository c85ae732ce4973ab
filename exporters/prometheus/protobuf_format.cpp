// SPDX-License-Identifier: Apache-2.0
// Field numbers are those of the published io/prometheus/client/metrics.proto.
#include "exporters/prometheus/protobuf_format.h"

#include <chrono>
#include <iterator>
#include <protozero/pbf_builder.hpp>
#include <protozero/varint.hpp>

#include "exporters/prometheus/native_buckets.h"

namespace ssdpulse::exposition {
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
