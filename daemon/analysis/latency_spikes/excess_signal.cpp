// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/excess_signal.h"

#include <algorithm>

namespace ssdpulse::analysis {
namespace {

double median_of(const SparseBuckets& buckets) { return upper_bound_seconds(quantile_bucket(buckets, 0.5)); }
double mean_of(const SparseBuckets& buckets) {
  return excess_above(buckets, 0, 0) / static_cast<double>(count(buckets));
}

}  // namespace

std::optional<Evidence> ExcessSignal::evaluate(const SignalWindow& now, double limit, double floor_seconds) {
  const auto is_long = find_long(now, limit);
  const auto broad = find_broad(now, floor_seconds);
  last_seconds_ = now.seconds();
  last_ios_ = static_cast<double>(now.io.ios);
  return is_long ? is_long : broad;
}

/// A process that issues one read at a time sees one slow I/O in a stall, and then many fast ones.
std::optional<Evidence> ExcessSignal::find_long(const SignalWindow& now, double limit) const {
  Evidence slow = evidence_beyond(now, limit);
  const bool most = seconds_above(now.io.total.words, limit) >= kMaxWaiting * seconds_above(now.io.total.words, 0);
  if (slow.ios == 0 || slow.slowest < kLongSeconds || !most) {
    return std::nullopt;
  }
  if (slow.share < kFewShare && slow.slowest < kAloneSeconds && !stood_still(now, slow.slowest)) {
    return std::nullopt;
  }
  slow.tail = slow.slowest;
  slow.alone = slow.slowest >= kAloneSeconds || slow.ios >= 2 || now.around.others_long;
  return slow;
}

/// The stall may have begun in the previous window.
bool ExcessSignal::stood_still(const SignalWindow& now, double slowest) const {
  const double done = last_ios_ + static_cast<double>(now.io.ios);
  const double usual = now.around.usual_rate * (last_seconds_ + now.seconds());
  return usual > 0 && usual - done >= kStoodStill * slowest * now.around.usual_rate;
}

/// Whether those who usually send this operation get less done, while others bring more load.
bool ExcessSignal::gets_less_done(const SignalWindow& now) {
  const double usual = now.around.usual_rate * now.seconds();
  const double own = now.around.senders_just_now;
  return (own >= kStoppedShare && own <= kStarvedShare) ||
         (usual > 0 && static_cast<double>(now.io.ios) <= kStarvedShare * usual);
}

std::optional<Evidence> ExcessSignal::find_broad(const SignalWindow& now, double floor_seconds) {
  const auto mean = usual_.mean.seconds();
  const auto median = usual_.median.seconds();
  const double most_load = now.in_spike ? kMuchMoreLoad : kMoreLoad;
  const bool with_others = now.around.load >= most_load;
  const bool starved = with_others && gets_less_done(now);
  const bool hardly_any = starved && now.around.senders_just_now <= kHardlyAnyShare;
  const double times = !with_others ? kTimesUsual
                       : hardly_any ? kTimesStarved
                       : starved    ? kTimesUsual
                                    : kTimesWithOthers;
  const double limit = mean && median ? std::max(floor_seconds, times * *mean) : 0;
  const bool same_load = now.around.own_load > 0 && now.around.own_load < most_load;
  const bool slower = now.enough && mean && median && same_load && mean_of(now.pooled) >= limit &&
                      median_of(now.pooled) >= std::max(floor_seconds, times * *median);
  if (!slower) {
    run_.reset();
    return std::nullopt;
  }
  Evidence slow = evidence_beyond(now, limit);
  slow.kind = EvidenceKind::broad;
  if (!run_) {
    run_ = slow;
    run_->since = slow.share >= kMaxWaiting ? now.begin : middle(now.begin, now.end);
    return std::nullopt;
  }
  run_->end = now.end;
  run_->ios += slow.ios;
  run_->tail = std::max(run_->tail, slow.tail);
  run_->alone = seconds_between(run_->begin, run_->end) >= (starved ? kStarvedSeconds : kBroadSeconds);
  if (now.in_spike) {
    return slow;
  }
  return run_->alone ? run_ : std::nullopt;
}

void ExcessSignal::Usual::learn(const SignalWindow& now) {
  mean.learn(now.begin, now.end, mean_of(now.pooled));
  median.learn(now.begin, now.end, median_of(now.pooled));
}

void ExcessSignal::learn(const SignalWindow& healthy) { usual_.learn(healthy); }

void ExcessSignal::forget_held() {
  usual_.mean.forget_held();
  usual_.median.forget_held();
}

void ExcessSignal::open() {
  forget_held();
  changed_ = Usual{};
}

void ExcessSignal::learn_changed(const SignalWindow& slow) { changed_.learn(slow); }

void ExcessSignal::accept() {
  if (changed_.mean.seconds() && changed_.median.seconds()) {
    usual_.mean.accept(*changed_.mean.seconds());
    usual_.median.accept(*changed_.median.seconds());
  }
}

}  // namespace ssdpulse::analysis
