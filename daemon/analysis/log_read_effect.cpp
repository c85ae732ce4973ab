// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/log_read_effect.h"

#include <cmath>

namespace ssdpulse::analysis {

void LogReadEffect::add_near(const LatencyBuckets& ios) { model::add(near_, ios); }

void LogReadEffect::add_all(const LatencyBuckets& ios) {
  model::add(all_, ios);
  if (model::count(near_) > kMaxIos) {
    fade();
  }
}

std::optional<double> LogReadEffect::ratio() const {
  const auto others = model::added(near_, all_);
  if (!others || model::count(near_) < kMinIos || model::count(*others) < kMinIos) {
    return std::nullopt;
  }
  const auto words_apart = static_cast<double>(model::quantile_bucket(near_, 0.99)) -
                           static_cast<double>(model::quantile_bucket(*others, 0.99));
  return std::exp2(words_apart / 8);
}

void LogReadEffect::fade() {
  // The near I/Os stay a subset of all: both are rounded down, and near <= all in each word.
  for (LatencyBuckets* buckets : {&near_, &all_}) {
    for (std::uint64_t& word : *buckets) {
      word /= 2;
    }
  }
}

}  // namespace ssdpulse::analysis
