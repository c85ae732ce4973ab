// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/log_read_effect.h"

#include <cmath>

namespace ssdpulse::analysis {

void LogReadEffect::add_near(const LatencyWords& ios) { model::add(near_, ios); }

void LogReadEffect::add_all(const LatencyWords& ios) {
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
  const auto words_apart =
      static_cast<double>(model::quantile_word(near_, 0.99)) - static_cast<double>(model::quantile_word(*others, 0.99));
  return std::exp2(words_apart / 8);
}

void LogReadEffect::fade() {
  // The near I/Os stay a subset of all: both are rounded down, and near <= all in each word.
  for (LatencyWords* words : {&near_, &all_}) {
    for (std::uint64_t& word : *words) {
      word /= 2;
    }
  }
}

}  // namespace ssdpulse::analysis
