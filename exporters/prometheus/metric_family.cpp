// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/metric_family.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ssdpulse::exposition {
namespace {

Labels without_empty(Labels labels) {
  std::erase_if(labels, [](const Label& label) { return label.value.empty(); });
  return labels;
}

std::vector<int> classic_indexes(const HistogramScale& scale) {
  std::vector<int> result(scale.classic_indexes.begin(), scale.classic_indexes.end());
  for (int index = scale.first_classic_index; scale.classic_indexes.empty() && index <= scale.last_classic_index;
       index += scale.classic_step) {
    result.push_back(index);
  }
  return result;
}

}  // namespace

std::uint64_t Histogram::count() const { return std::accumulate(counts.begin(), counts.end(), zero_count); }

std::vector<ClassicBucket> classic_buckets(const Histogram& histogram) {
  const auto& scale = *histogram.scale;
  std::vector<ClassicBucket> buckets;
  const auto bounds = classic_indexes(scale);
  buckets.reserve(bounds.size());
  std::uint64_t cumulative = histogram.zero_count;
  auto next = histogram.counts.begin();
  for (const int index : bounds) {
    const auto end = histogram.counts.begin() + (index - scale.first_index + 1);
    cumulative = std::accumulate(next, end, cumulative);
    next = end;
    buckets.push_back({std::ldexp(1.0, index / (1 << scale.schema)), cumulative});
  }
  return buckets;
}

Histogram to_histogram(const model::LatencyHistogram& latency) {
  return {&kLatencyScale, latency.words[LATENCY_ZERO_WORD], std::span(latency.words).subspan(LATENCY_UNDER_WORD),
          to_seconds(latency.sum_ns)};
}

Histogram to_histogram(const model::SizeHistogram& size) {
  return {&kSizeScale, size.words[0], std::span(size.words).subspan(1), to_double(size.sum_bytes)};
}

Histogram to_histogram(const model::DepthHistogram& depth) {
  return {&kDepthScale, depth.words[0], std::span(depth.words).subspan(1), to_double(depth.sum_ios)};
}

void Samples::add(Labels labels, std::optional<double> value, std::optional<model::WallTime> created) {
  if (value) {
    samples_.push_back({without_empty(std::move(labels)), *value, created});
  }
}

void Samples::add(Labels labels, const Histogram& histogram, std::optional<model::WallTime> created) {
  samples_.push_back({without_empty(std::move(labels)), histogram, created});
}

void Samples::add_info(Labels labels) {
  labels = without_empty(std::move(labels));
  if (infos_.insert(labels).second) {
    samples_.push_back({std::move(labels), 1.0, std::nullopt});
  }
}

}  // namespace ssdpulse::exposition
