// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ssdpulse::page {

double seconds_of(model::WallTime time) {
  return static_cast<double>(std::chrono::round<std::chrono::milliseconds>(time.time_since_epoch()).count()) / 1000;
}

Json rounded(double value) { return value == 0 ? 0.0 : std::stod(fmt::format("{:.4g}", value)); }

Json latency_of(std::size_t word) { return rounded(model::upper_bound_seconds(word)); }

Json bounds_json() {
  Json seconds = Json::array();
  for (std::size_t word = 0; word <= LATENCY_OVER_WORD; ++word) {
    seconds.push_back(latency_of(word));
  }
  return seconds;
}

Json quantile_of(const model::SparseHistogram& histogram, double share) {
  return histogram.empty() ? Json() : latency_of(model::quantile_bucket(histogram.words, share));
}

std::string heat_text(const model::SparseBuckets& buckets) {
  if (buckets.empty()) {
    return "";
  }
  // An answer with two levels per octave is a third longer, and the eye sees no difference.
  const auto level_of = [](std::uint64_t ios) {
    return static_cast<char>('0' + (ios == 0 ? 0 : 64 - __builtin_clzll(ios)));
  };
  const std::uint8_t first = buckets.front().first;
  std::string levels(static_cast<std::size_t>(buckets.back().first - first) + 1, '0');
  for (const auto& [word, ios] : buckets) {
    levels[static_cast<std::size_t>(word - first)] = level_of(ios);
  }
  return fmt::format("{}:{}", first, levels);
}

std::optional<model::Operation> operation_in(const std::string& name) {
  return model::operation_named(name.empty() ? "read" : name, model::kLiveOperations);
}

std::string run_of(const model::Snapshot& snapshot) {
  return fmt::format("{:.2f}", snapshot.process.start_time_seconds);
}

Json head_of(const model::Snapshot& snapshot) {
  return {{"run", run_of(snapshot)}, {"snapshot", snapshot.number}, {"taken_at", seconds_of(snapshot.taken_at)}};
}

}  // namespace ssdpulse::page
