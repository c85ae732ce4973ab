// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/spike_detector.h"

#include <algorithm>

namespace ssdpulse::spikes {

constexpr double kNearlyAll = 0.9;  // of a window's I/Os

/// This window, and as many before it as it takes to have enough I/Os.
SparseBuckets SpikeDetector::pool(SteadyTime end, const SparseBuckets& total) {
  while (!parts_.empty() && seconds_between(parts_.front().end, end) >= pool_seconds_) {
    parts_.pop_front();
  }
  SparseBuckets pooled = total;
  for (auto part = parts_.rbegin(); part != parts_.rend() && count(pooled) < kMinIos; ++part) {
    spikes::add(pooled, part->total);
  }
  parts_.push_back({end, total});
  return pooled;
}

std::optional<double> SpikeDetector::limit_seconds(double floor_seconds) const {
  return baseline_seconds() ? std::optional(tail_.limit(floor_seconds)) : std::nullopt;
}

/// Returns the clearest evidence there is. Each signal sees each window about which it may say something.
std::optional<Evidence> SpikeDetector::evaluate(const SignalWindow& now, double floor_seconds) {
  const double limit = tail_.limit(floor_seconds);
  const auto stall = stall_.evaluate(now, limit);
  if (stall || !baseline_seconds() || now.io.total.count() == 0) {
    return baseline_seconds() || span_ ? stall : std::nullopt;
  }
  std::optional<Evidence> slow;
  // An open spike, a stall that just ended, or an I/O that took as long as the whole pool may be why there are few.
  if (now.enough || now.in_spike || stall_.just_over() || slowest_seconds(now.io.total) >= pool_seconds_) {
    slow = excess_.evaluate(now, limit, floor_seconds);
    if (const auto tail = tail_.evaluate(now, limit); tail && (!slow || slow->kind != EvidenceKind::clear)) {
      slow = tail;
    }
  }
  const bool in_rare = span_ && span_->kind == EvidenceKind::rare;
  if (!slow && (in_rare || (!span_ && now.enough))) {
    slow = outlier_.evaluate(now, limit);
  }
  return slow;
}

SpikeDetector::Event SpikeDetector::observe(SteadyTime begin, SteadyTime end, const OperationInterval& window,
                                            double floor_seconds, const Surroundings& around) {
  if (over_) {
    span_.reset();
    over_ = false;
  }
  const SparseBuckets pooled = pool(end, window.total.words);
  const bool enough = count(pooled) >= kMinIos;
  const SignalWindow now{begin, end, window, pooled, enough, span_.has_value(), around};
  tail_.choose(now);
  if (around.others_in_spike) {
    tail_.forget_held();
    excess_.forget_held();
  }
  const auto slow = evaluate(now, floor_seconds);
  if (enough && window.total.count() > 0 && (span_.has_value() == slow.has_value())) {
    if (slow) {
      tail_.learn_changed(now);
      excess_.learn_changed(now);
    } else if (!around.others_in_spike) {
      tail_.learn(now);
      excess_.learn(now);
    }
  }
  return span_ ? go_on(now, slow) : watch(now, slow);
}

SpikeDetector::Event SpikeDetector::watch(const SignalWindow& now, const std::optional<Evidence>& slow) {
  if (first_slow_ && seconds_between(first_slow_->end, now.begin) > kTogetherSeconds) {
    first_slow_.reset();
  }
  if (!slow) {
    return Event::none;
  }
  const bool stalled_again = again(now, *slow);
  const bool alone = slow->alone || stalled_again || now.seconds() >= kTogetherSeconds;
  if (!first_slow_ && !alone) {
    first_slow_ = slow;
    return Event::none;
  }
  // Evidence that is clear by itself needs nothing before it: a hiccup that had passed is not its beginning.
  if (first_slow_ && alone && begin_of(*slow) > first_slow_->end) {
    first_slow_.reset();
  }
  open(first_slow_.value_or(*slow));
  if (first_slow_) {
    span_->kind = slow->kind;
    add(*first_slow_);
    first_slow_.reset();
  }
  add(*slow);
  return Event::began;
}

/// A stall within one second, shortly after another: many I/Os, not those of a tail, without more of them than usual.
bool SpikeDetector::again(const SignalWindow& now, const Evidence& slow) {
  const bool stalled =
      slow.kind == EvidenceKind::clear && slow.ios >= kMinStalled &&
      now.around.operation_load < ExcessSignal::kMoreLoad &&
      seconds_above(now.io.total.words, slow.limit) >= ExcessSignal::kMaxWaiting * seconds_above(now.io.total.words, 0);
  const bool before = last_stall_ && seconds_between(*last_stall_, now.begin) < kAgainSeconds &&
                      seconds_between(*last_stall_, now.begin) > kTogetherSeconds;
  if (stalled) {
    last_stall_ = now.end;
  }
  return stalled && before;
}

void SpikeDetector::open(const Evidence& first) {
  span_ = SpikeSpan{};
  span_->kind = first.kind;
  span_->limit = first.limit;
  span_->baseline = baseline_seconds().value_or(0);
  span_->began = begin_of(first);
  tail_.open();
  excess_.open();
  outlier_.open();
}

/// When the I/Os that completed in this window began to be slow, judging by how long the slowest one took.
SteadyTime SpikeDetector::begin_of(const Evidence& slow) const {
  if (slow.since) {
    return std::max(*slow.since, last_over_);
  }
  const bool from_its_begin = slow.share >= kNearlyAll && slow.slowest < kAloneSeconds;
  const SteadyTime seen = from_its_begin ? slow.begin : middle(slow.begin, slow.end);
  // Without any I/O, it has stalled since some time in the previous window.
  return std::max(slow.ios == 0 ? slow.end - nanoseconds_of(slow.slowest + 0.5) : seen - nanoseconds_of(slow.slowest),
                  last_over_);
}

void SpikeDetector::add(const Evidence& slow) {
  // After a stall, the first completions show more precisely when it began.
  if (span_->ios == 0 && slow.ios > 0) {
    span_->began = std::min(span_->began, begin_of(slow));
  }
  span_->ios += slow.ios;
  span_->peak = std::max(span_->peak, slow.tail);
  const bool to_its_end = slow.ios == 0 || slow.share >= kNearlyAll;
  span_->ended = to_its_end ? slow.end : middle(slow.begin, slow.end);
  span_->ended = std::max(span_->ended, span_->began);
  last_slow_end_ = slow.end;
  healthy_since_ = false;
}

SpikeDetector::Event SpikeDetector::go_on(const SignalWindow& now, std::optional<Evidence> slow) {
  // All I/Os may be somewhat slower for a while after they were much slower.
  if (slow && slow->kind != EvidenceKind::clear && slow->kind != span_->kind) {
    slow.reset();
  }
  if (slow) {
    add(*slow);
    span_->accepted = seconds_between(span_->began, now.end) >= kAcceptSeconds && accept();
  }
  healthy_since_ = !slow && (healthy_since_ || now.io.ios > 0);
  const double quiet = span_->kind == EvidenceKind::rare ? kRareQuietSeconds
                       : healthy_since_                  ? kQuietSeconds
                                                         : kIdleSeconds;
  if (!span_->accepted && (slow || seconds_between(last_slow_end_, now.end) < quiet)) {
    return Event::none;
  }
  over_ = true;
  last_over_ = span_->ended;
  if (span_->kind == EvidenceKind::clear && !span_->accepted) {
    last_stall_ = last_over_;
  }
  parts_.clear();  // what was slow in this spike is not evidence of another
  return Event::ended;
}

/// A change that lasted this long is the new normal, if enough of it was seen.
bool SpikeDetector::accept() {
  if (span_->kind == EvidenceKind::rare) {
    outlier_.accept();
    return true;
  }
  excess_.accept();
  return tail_.accept();
}

}  // namespace ssdpulse::spikes
