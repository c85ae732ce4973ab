// SPDX-License-Identifier: Apache-2.0
// Extrapolations of wear; a drive beyond its rated life has 0 s left, not less.
#include "daemon/analysis/write_amplification/wear_rate.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::analysis {

void WearRate::observe(Time at, double used) {
  constexpr double kMaxUsedRatio = 10;
  if (!(used >= 0 && used <= kMaxUsedRatio)) {  // NaN is neither
    return;
  }
  const std::int64_t percent = std::llround(used * 100);
  if (!sightings_.empty() && (percent < sightings_.back().percent || at < sightings_.back().first_at)) {
    sightings_.clear();
  }
  now_ = at;
  if (!sightings_.empty() && percent == sightings_.back().percent) {
    return;
  }
  if (sightings_.size() >= kMaxSightings) {
    sightings_.erase(sightings_.begin());
  }
  sightings_.push_back({percent, at});
}

void WearRate::move_times(Time by) {
  for (Sighting& sighting : sightings_) {
    sighting.first_at += by;
  }
  now_ += by;
}

std::optional<model::LifeRemaining> WearRate::life_remaining() const {
  constexpr std::int64_t kMinRise = 2;
  if (sightings_.empty()) {
    return std::nullopt;
  }
  const Sighting& first = sightings_.front();
  const Sighting& last = sightings_.back();
  if (last.percent - first.percent < kMinRise) {
    return std::nullopt;
  }
  // Two sightings at the same time give no rate.
  if (last.first_at == first.first_at) {
    return std::nullopt;
  }
  const auto rise = last.percent - first.percent;
  Time window = last.first_at - first.first_at;
  double risen = static_cast<double>(rise);
  if (now_ - last.first_at > window / rise) {
    window = now_ - first.first_at;
    risen += 1;  // the next percent has not come yet: less than this was used
  }
  const double seconds = std::chrono::duration<double>(window).count();
  const double left = static_cast<double>(std::max<std::int64_t>(100 - last.percent, 0));
  return model::LifeRemaining{"percentage_used", seconds, left * seconds / risen};
}

std::optional<model::LifeRemaining> life_by_endurance(double rated, double written, double rate,
                                                      double window_seconds) {
  if (!(rate > 0 && window_seconds > 0 && rated > 0)) {
    return std::nullopt;
  }
  return model::LifeRemaining{"endurance_estimate", window_seconds,
                              std::max(rated - written, 0.0) * window_seconds / rate};
}

}  // namespace ssdpulse::analysis
