// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/stall_signal.h"

#include <algorithm>

namespace ssdpulse::analysis {

std::optional<Evidence> StallSignal::evaluate(const SignalWindow& now, double limit) {
  const double slowest = now.io.ios > 0 ? slowest_seconds(now.io.total.words) : 0;
  find_again(now, slowest);
  just_over_ = false;
  if (!now.io.stalled(leaked_)) {
    end(now, slowest);
    return std::nullopt;
  }
  stalled_ = since_ ? std::min(stalled_, now.io.least_in_flight()) : now.io.least_in_flight();
  since_ = since_.value_or(now.begin);
  Evidence slow{now.begin, now.end};
  slow.limit = limit;
  slow.tail = slow.slowest = seconds_between(*since_, now.end);
  slow.alone = slow.tail >= kAloneSeconds;
  return plausible(now) && slow.tail > limit ? std::optional(slow) : std::nullopt;
}

/// Corrects the leak count: fewer are in flight, or one has completed that was in flight all through that stall. The
/// longest latency that can be recognized is kLongestSeconds.
void StallSignal::find_again(const SignalWindow& now, double slowest) {
  leaked_ = std::min(leaked_, now.io.least_in_flight());
  if (leaked_ > 0 && slowest > 0 && slowest >= std::min(kLongestSeconds, seconds_between(leaked_since_, now.begin))) {
    leaked_ = 0;
  }
}

void StallSignal::end(const SignalWindow& now, double slowest) {
  // An I/O that fails over to another path completes there quickly, as an I/O of its own.
  if (since_ && !confirmed_ && now.io.ios > 0 && now.io.failovers == 0 && now.io.device_errors == 0 &&
      slowest < std::min(kLongSeconds, seconds_between(*since_, now.begin) / 2)) {
    leaked_ = std::min(stalled_, now.io.least_in_flight());
    leaked_since_ = *since_;
  }
  just_over_ = since_.has_value();
  since_.reset();
  denied_.reset();
  confirmed_ = false;
}

bool StallSignal::plausible(const SignalWindow& now) {
  if (now.around.kernel_in_flight) {
    const std::int64_t absent = std::max<std::int64_t>(0, now.io.least_in_flight() - *now.around.kernel_in_flight);
    if (denied_ && std::min(absent, *denied_) > leaked_) {
      leaked_ = std::min(absent, *denied_);
      leaked_since_ = *since_;
    }
    denied_ = absent;
    confirmed_ = *now.around.kernel_in_flight > 0;
    return confirmed_;
  }
  if (seconds_between(*since_, now.end) >= kStallSeconds && !confirmed_) {
    leaked_ = stalled_;
    leaked_since_ = *since_;
    return false;
  }
  return !now.around.unseen_lately;
}

}  // namespace ssdpulse::analysis
