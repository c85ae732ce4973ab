// SPDX-License-Identifier: Apache-2.0
// What does a plain Prometheus text page look like?
#include "exporters/prometheus/text_format.h"

#include <prometheus/text_serializer.h>

#include <sstream>

namespace ssdpulse::exposition {
namespace {

::prometheus::MetricType to_type(Type type) {
  switch (type) {
    case Type::counter:
      return ::prometheus::MetricType::Counter;
    case Type::gauge:
      return ::prometheus::MetricType::Gauge;
    case Type::histogram:
      return ::prometheus::MetricType::Histogram;
  }
  return ::prometheus::MetricType::Untyped;
}

::prometheus::ClientMetric to_metric(Type type, const Sample& sample) {
  ::prometheus::ClientMetric metric;
  for (const auto& label : sample.labels) {
    metric.label.push_back({std::string(label.name), label.value});
  }
  if (const auto* histogram = std::get_if<Histogram>(&sample.value)) {
    metric.histogram.sample_count = histogram->count();
    metric.histogram.sample_sum = histogram->sum;
    for (const auto& bucket : classic_buckets(*histogram)) {
      metric.histogram.bucket.push_back({bucket.cumulative_count, bucket.upper_bound});
    }
  } else if (type == Type::counter) {
    metric.counter.value = std::get<double>(sample.value);
  } else {
    metric.gauge.value = std::get<double>(sample.value);
  }
  return metric;
}

}  // namespace

std::string render_text(const std::vector<Family>& families) {
  std::ostringstream out;
  const ::prometheus::TextSerializer serializer;
  for (const auto& family : families) {
    const auto& description = *family.description;
    ::prometheus::MetricFamily converted{
        std::string(description.name), std::string(description.help), to_type(description.type), {}};
    for (const auto& sample : family.samples) {
      converted.metric.push_back(to_metric(description.type, sample));
    }
    serializer.Serialize(out, {std::move(converted)});
  }
  return std::move(out).str();
}

}  // namespace ssdpulse::exposition
