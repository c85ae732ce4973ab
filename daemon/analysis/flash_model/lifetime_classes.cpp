// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/lifetime_classes.h"

#include <algorithm>
#include <numeric>

namespace ssdpulse::analysis {

std::uint32_t LifetimeClasses::next(std::optional<std::uint32_t> lifetime) {
  if (lifetime) {
    recent_.add(*lifetime);
  } else {
    ++unknown_;
  }
  if (++seen_ % kLearnEvery == 0) {
    learn();
  }
  const std::uint32_t longest = lifetime.value_or(UINT32_MAX);
  const auto above =
      std::find_if(limits_.begin(), limits_.end(), [longest](std::uint32_t limit) { return longest < limit; });
  return static_cast<std::uint32_t>(above - limits_.begin());
}

void LifetimeClasses::learn() {
  auto& counts = recent_.counts;
  const std::uint64_t all = std::accumulate(counts.begin(), counts.end(), unknown_);
  std::uint64_t below = 0;
  std::size_t limit = 0;
  for (std::size_t bucket = 0; bucket < LifetimeHistogram::kBuckets; ++bucket) {
    below += counts[bucket];
    while (limit < limits_.size() && below * kClasses >= all * (limit + 1)) {
      limits_[limit++] =
          static_cast<std::uint32_t>(std::min<double>(LifetimeHistogram::lower_bound(bucket + 1), UINT32_MAX));
    }
    counts[bucket] /= 2;
  }
  std::fill(limits_.begin() + static_cast<std::ptrdiff_t>(limit), limits_.end(), UINT32_MAX);
  unknown_ /= 2;
}

void LifetimeClasses::save(BinaryWriter& out) const {
  out(recent_.counts);
  out(unknown_);
  out(seen_);
  for (const std::uint32_t limit : limits_) {
    out(limit);
  }
}

bool LifetimeClasses::restore(BinaryReader& in) {
  in(recent_.counts);
  in(unknown_);
  in(seen_);
  for (std::uint32_t& limit : limits_) {
    in(limit);
  }
  return in.good();
}

}  // namespace ssdpulse::analysis
