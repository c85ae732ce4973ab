// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/spike_detector.h"

#include <algorithm>

namespace ssdpulse::analysis {
namespace {

constexpr double kTail = 0.99;
constexpr double kNearlyAll = 0.9;

double tail_of(const LatencyWords& words) { return upper_bound_seconds(quantile_word(words, kTail)); }

SteadyTime middle(SteadyTime begin, SteadyTime end) { return begin + (end - begin) / 2; }

}  // namespace

/// This window, and as many before it as it takes for enough I/Os.
LatencyWords SpikeDetector::pool(SteadyTime end, const LatencyWords& total) {
  while (!parts_.empty() && seconds_between(parts_.front().end, end) >= kPoolSeconds) {
    parts_.pop_front();
  }
  LatencyWords pooled = total;
  for (auto part = parts_.rbegin(); part != parts_.rend() && count(pooled) < kLeastIos; ++part) {
    analysis::add(pooled, part->total);
  }
  parts_.push_back({end, total});
  return pooled;
}

/// Remembers since when, and what was in flight for nothing.
bool SpikeDetector::stalls(SteadyTime begin, SteadyTime end, const OperationWindow& window) {
  leaked_ = std::min(leaked_, window.least_in_flight());
  const double slowest = window.ios > 0 ? slowest_seconds(window.total) : 0;
  // An I/O that was in flight all through that stall has completed. The longest that can be told is kLongestSeconds.
  if (leaked_ > 0 && slowest > 0 && slowest >= std::min(kLongestSeconds, seconds_between(leaked_since_, begin))) {
    leaked_ = 0;
  }
  if (!window.stalled(leaked_)) {
    // What fails over to another path completes there, and quickly, as an I/O of its own.
    if (stall_since_ && window.ios > 0 && window.failovers == 0 && window.errors == 0 &&
        slowest < std::min(kLongSeconds, seconds_between(*stall_since_, begin) / 2)) {
      leaked_ = std::min(stalled_, window.least_in_flight());
      leaked_since_ = *stall_since_;
    }
    return false;
  }
  stalled_ = stall_since_ ? std::min(stalled_, window.least_in_flight()) : window.least_in_flight();
  stall_since_ = stall_since_.value_or(begin);
  if (seconds_between(*stall_since_, end) >= kStallSeconds) {
    leaked_ = stalled_;
    leaked_since_ = *stall_since_;
  }
  return true;
}

std::optional<SpikeDetector::Slow> SpikeDetector::look(SteadyTime begin, SteadyTime end, const OperationWindow& window,
                                                       double limit, const LatencyWords& pooled) {
  Slow slow{begin, end};
  if (stalls(begin, end, window)) {
    slow.tail = slow.slowest = seconds_between(*stall_since_, end);
    const bool believed = slow.tail > limit && slow.tail < kStallSeconds;
    return believed ? std::optional(slow) : std::nullopt;
  }
  const bool after_stall = stall_since_.has_value();
  stall_since_.reset();
  slow.ios = count_above(window.total, limit);
  // A spike that goes on, or a stall that ends, may be why there are few.
  const bool enough = count(pooled) >= kLeastIos;
  if (slow.ios == 0 || (!enough && !span_ && !after_stall)) {
    return std::nullopt;
  }
  slow.tail = tail_of(window.total);
  slow.slowest = slowest_seconds(window.total);
  slow.share = static_cast<double>(slow.ios) / static_cast<double>(count(window.total));
  // Who reads one at a time has one slow I/O in a stall, and then many that are quick.
  const double slow_seconds = seconds_above(window.total, limit);
  if (slow.slowest >= kLongSeconds && slow_seconds >= seconds_above(window.total, 0) / 2) {
    slow.tail = slow.slowest;
    return slow;
  }
  // One I/O that took a little longer is chance.
  const bool beyond = enough && quantile_word(pooled, kTail) >= first_word_above(limit);
  return slow.ios >= 2 && beyond ? std::optional(slow) : std::nullopt;
}

SpikeDetector::Event SpikeDetector::observe(SteadyTime begin, SteadyTime end, const OperationWindow& window,
                                            double floor_seconds) {
  if (over_) {
    span_.reset();
    over_ = false;
  }
  const LatencyWords pooled = pool(end, window.total);
  const bool enough = count(window.total) > 0 && count(pooled) >= kLeastIos;
  if (span_) {
    const auto slow = look(begin, end, window, span_->limit, pooled);
    if (slow && enough) {
      candidate_->learn(begin, end, tail_of(pooled));
    }
    return go_on(end, slow);
  }
  std::optional<Slow> slow;
  const auto usual = baseline_.seconds();
  const double limit = std::max(floor_seconds, kTimesBaseline * usual.value_or(0));
  if (usual) {
    slow = look(begin, end, window, limit, pooled);
  }
  if (!slow && enough) {
    baseline_.learn(begin, end, tail_of(pooled));
  }
  return watch(begin, slow, limit);
}

SpikeDetector::Event SpikeDetector::watch(SteadyTime begin, const std::optional<Slow>& slow, double limit) {
  if (first_slow_ && seconds_between(first_slow_->end, begin) > kTogetherSeconds) {
    first_slow_.reset();
  }
  if (!slow) {
    return Event::none;
  }
  const bool alone = slow->tail >= kAloneSeconds || seconds_between(slow->begin, slow->end) >= kTogetherSeconds;
  if (!first_slow_ && !alone) {
    first_slow_ = slow;
    return Event::none;
  }
  span_ = SpikeSpan{};
  span_->limit = limit;
  span_->baseline = baseline_.seconds().value_or(0);
  span_->began = begin_of(first_slow_.value_or(*slow));
  if (first_slow_) {
    add(*first_slow_);
  }
  add(*slow);
  first_slow_.reset();
  baseline_.forget_held();
  candidate_ = Baseline{};
  return Event::began;
}

/// When the I/Os that completed in this window began to be slow: by the time that the slowest took.
SteadyTime SpikeDetector::begin_of(const Slow& slow) const {
  const bool from_its_begin = slow.share >= kNearlyAll && slow.slowest < kAloneSeconds;
  const SteadyTime seen = from_its_begin ? slow.begin : middle(slow.begin, slow.end);
  SteadyTime begin = seen - nanoseconds_of(slow.slowest);
  if (slow.ios == 0) {
    begin = slow.end - nanoseconds_of(slow.slowest + 0.5);  // stalled since some time in the window before
  }
  return std::max(begin, last_over_);
}

void SpikeDetector::add(const Slow& slow) {
  // After a stall, the first completions say better when it began.
  if (span_->ios == 0 && slow.ios > 0) {
    span_->began = std::min(span_->began, begin_of(slow));
  }
  span_->ios += slow.ios;
  span_->peak = std::max(span_->peak, slow.tail);
  const bool to_its_end = slow.ios == 0 || slow.share >= kNearlyAll;
  span_->ended = to_its_end ? slow.end : middle(slow.begin, slow.end);
  span_->ended = std::max(span_->ended, span_->began);
  last_slow_end_ = slow.end;
}

SpikeDetector::Event SpikeDetector::go_on(SteadyTime end, const std::optional<Slow>& slow) {
  if (slow) {
    add(*slow);
    const auto usual = candidate_->seconds();
    if (usual && seconds_between(span_->began, end) >= kAcceptSeconds) {
      baseline_.accept(*usual);
      span_->accepted = true;
    }
  }
  if (!span_->accepted && (slow || seconds_between(last_slow_end_, end) < kQuietSeconds)) {
    return Event::none;
  }
  over_ = true;
  last_over_ = span_->ended;
  return Event::ended;
}

}  // namespace ssdpulse::analysis
