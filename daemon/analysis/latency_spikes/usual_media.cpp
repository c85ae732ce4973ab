// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/usual_media.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::analysis {
namespace {

double quantile(std::vector<double> values, double share) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

double least_bytes(double doubt_bytes) {
  return std::max(UsualMedia::kMinBytes, UsualMedia::kMinUncertainties * doubt_bytes);
}

}  // namespace

void UsualMedia::learn(double host_bytes, double media_bytes, double seconds, double doubt_bytes) {
  begun_.host += std::max(0.0, host_bytes);
  begun_.media += std::max(0.0, media_bytes);
  begun_.seconds += seconds;
  if (begun_.seconds <= 0 || std::max(begun_.host, begun_.media) < least_bytes(doubt_bytes)) {
    return;
  }
  intervals_.push_back({begun_.host / begun_.seconds, begun_.media / begun_.seconds, begun_.seconds});
  begun_ = {};
  if (intervals_.size() > kMaxIntervals) {
    intervals_.pop_front();
  }
  estimate();
}

void UsualMedia::learn_life(double host_bytes, double media_bytes, double doubt_bytes) {
  if (intervals_.empty() && host_bytes >= least_bytes(doubt_bytes)) {
    ratio_ = std::max(1.0, media_bytes / host_bytes);
  }
}

/// What a byte costs according to each interval: the median of the slopes between it and the intervals of a different
/// load (Siegel). The ratio is the lower quartile of these costs; the background is the median of what is left.
void UsualMedia::estimate() {
  std::vector<double> costs;
  for (const Interval& own : intervals_) {
    std::vector<double> slopes;
    for (const Interval& other : intervals_) {
      const double more = own.host - other.host;
      if (std::abs(more) > kDifferentLoad * std::max(own.host, other.host)) {
        slopes.push_back((own.media - other.media) / more);
      }
    }
    if (!slopes.empty()) {
      costs.push_back(quantile(std::move(slopes), 0.5));
    }
  }
  ratio_ = costs.empty() ? 1 : std::max(1.0, quantile(std::move(costs), kLowerQuartile));
  std::vector<double> rest;
  for (const Interval& interval : intervals_) {
    rest.push_back(interval.media - ratio_ * interval.host);
  }
  background_ = std::max(0.0, quantile(std::move(rest), 0.5));
}

}  // namespace ssdpulse::analysis
