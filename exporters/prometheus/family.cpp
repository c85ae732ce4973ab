// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/family.h"

#include <utf8.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace ssdpulse::exposition {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_refused_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n') || byte == 0x7f;
}

bool is_plain(char c) { return c >= 0x20 && c < 0x7f; }

// Serial numbers and models come from drives, mount points from anyone: any byte can occur.
void clean(std::string& value) {
  if (std::all_of(value.begin(), value.end(), is_plain)) {
    return;
  }
  std::string valid;
  utf8::replace_invalid(value.begin(), value.end(), std::back_inserter(valid), 0xFFFD);
  value.clear();
  for (const char c : valid) {
    if (is_refused_control(c)) {
      value += kReplacement;
    } else {
      value += c;
    }
  }
}

Labels clean(Labels labels) {
  std::erase_if(labels, [](const Label& label) { return label.value.empty(); });
  for (auto& label : labels) {
    clean(label.value);
  }
  return labels;
}

std::size_t hash_of(const Labels& labels) {
  std::size_t hash = 0;
  for (const Label& label : labels) {
    hash = hash * 31 + std::hash<std::string_view>()(label.name);
    hash = hash * 31 + std::hash<std::string_view>()(label.value);
  }
  return hash;
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

void Samples::add(Labels labels, double value, std::optional<model::WallTime> created) {
  samples_.push_back({clean(std::move(labels)), value, created});
}

void Samples::add(Labels labels, const Histogram& histogram, std::optional<model::WallTime> created) {
  samples_.push_back({clean(std::move(labels)), histogram, created});
}

std::vector<Sample> Samples::take(Type type) {
  std::vector<Sample> distinct;
  distinct.reserve(samples_.size());
  std::unordered_multimap<std::size_t, std::size_t> by_hash;  // to its number in `distinct`
  by_hash.reserve(samples_.size());
  for (Sample& sample : samples_) {
    const std::size_t hash = hash_of(sample.labels);
    const auto [begin, end] = by_hash.equal_range(hash);
    const auto known =
        std::find_if(begin, end, [&](const auto& one) { return distinct[one.second].labels == sample.labels; });
    if (known == end) {
      by_hash.emplace(hash, distinct.size());
      distinct.push_back(std::move(sample));
    } else if (type == Type::counter) {
      std::get<double>(distinct[known->second].value) += std::get<double>(sample.value);
    }
  }
  samples_.clear();
  return distinct;
}

}  // namespace ssdpulse::exposition
