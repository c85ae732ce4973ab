// SPDX-License-Identifier: Apache-2.0
// What changes and standstills prove about a counter's period: see the header.
#include "daemon/analysis/write_amplification/counter_lag.h"

#include <algorithm>

namespace ssdpulse::analysis {

void CounterLag::observe(Time at, Uint128 count, const WriteEvidence& evidence, Uint128 hidden) {
  if (!last_ || last_->count != count) {
    if (last_) {
      // Two updates fell between the reading before the first change and this one.
      if (before_change_) {
        shortest_period_ = std::min(shortest_period_, at - *before_change_);
      }
      before_change_ = last_->at;
    }
    last_ = Reading{at, count, at, evidence, Time{0}};
    return;
  }
  last_->at = at;
  const auto certain = [&](Interval now, Interval then) { return subtract(now, then).low; };
  const auto possible = [&](Interval now, Interval then) { return subtract(now, then).high; };
  const WriteEvidence& then = last_->then;
  if (certain(evidence.host, then.host) > hidden || certain(evidence.block, then.block) > hidden) {
    last_->stale_for = at - last_->unmoved_since;
    longest_stale_ = std::max(longest_stale_, last_->stale_for);
  } else if (possible(evidence.block, then.block) == 0) {
    // Nothing was written, so there was nothing to show until now.
    last_->unmoved_since = at;
    last_->then = evidence;
  }
}

CounterLag::Time CounterLag::lag(Time poll_interval) const {
  // Changes in two successive polls: the period cannot leave a whole poll without one, however late those polls came.
  const bool follows = shortest_period_ <= poll_interval * 5 / 2;
  if (follows && longest_stale_ == Time{0}) {
    return Time{0};
  }
  // One more poll, because the host's counter is not read at exactly the same time as the media's.
  return std::max(longest_stale_, shortest_period_) + poll_interval;
}

}  // namespace ssdpulse::analysis
