// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/spike_detector.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::spikes {
namespace {

constexpr double kShortestSeconds = 1e-6;  // the first bucket: nothing is shorter, and 0 has no octave
constexpr double kMaxSeconds = 5;          // the most that one window counts for
constexpr std::size_t kMinWindows = 2;
constexpr double kNearlyAllOfWindow = 0.9;  // of a window's I/Os

double octave_of(double seconds) { return std::log2(std::max(seconds, kShortestSeconds)); }
double tail_of(const SparseBuckets& buckets) { return upper_bound_seconds(quantile_bucket(buckets, kTail)); }
double median_of(const SparseBuckets& buckets) { return upper_bound_seconds(quantile_bucket(buckets, 0.5)); }
double mean_of(const SparseBuckets& buckets) {
  return excess_above(buckets, 0, 0) / static_cast<double>(count(buckets));
}

}  // namespace

void Baseline::learn(SteadyTime begin, SteadyTime end, double figure_seconds) {
  held_.push_back({end, std::min(seconds_between(begin, end), kMaxSeconds), octave_of(figure_seconds)});
  while (seconds_between(held_.front().end, end) >= kHoldSeconds) {
    take(held_.front());
    held_.pop_front();
  }
}

void Baseline::take(const Held& held) {
  double weight = 1 - std::exp(-held.seconds / (held.octave > octave_ ? kRiseSeconds : fall_seconds_));
  if (!seconds()) {
    weight = held.seconds / (learned_seconds_ + held.seconds);  // a plain average at first
  }
  octave_ += weight * (held.octave - octave_);
  learned_seconds_ += held.seconds;
  ++windows_;
}

void Baseline::accept(double figure_seconds) {
  held_.clear();
  octave_ = octave_of(figure_seconds);
}

std::optional<double> Baseline::seconds() const {
  const bool known = windows_ >= kMinWindows && learned_seconds_ >= kMinSeconds;
  return known ? std::optional(std::exp2(octave_)) : std::nullopt;
}

Evidence evidence_beyond(const SignalWindow& now, double limit) {
  Evidence slow{now.begin, now.end};
  slow.limit = limit;
  const std::uint64_t ios = now.io.total.count();
  if (ios > 0) {
    slow.ios = count_above(now.io.total.words, limit);
    slow.tail = tail_of(now.io.total.words);
    slow.slowest = slowest_seconds(now.io.total);
    slow.share = static_cast<double>(slow.ios) / static_cast<double>(ios);
  }
  return slow;
}

std::optional<Evidence> TailSignal::evaluate(const SignalWindow& now, double limit) const {
  if (!now.enough || quantile_bucket(now.pooled, kTail) < first_bucket_above(limit)) {
    return std::nullopt;
  }
  Evidence slow = evidence_beyond(now, limit);
  slow.alone = slow.tail >= kAloneSeconds;
  // One I/O that took a little longer is chance.
  return slow.ios >= 2 ? std::optional(slow) : std::nullopt;
}

void TailSignal::choose(const SignalWindow& now) {
  if (now.in_spike) {
    return;
  }
  const Surroundings& around = now.around;
  is_busy_ = around.own_load == 0 ||
             (around.own_load >= kMoreLoad && around.ios_per_second >= kAsBusy * busy_ios_per_second_ &&
              around.bytes_per_second >= kAsBusy * busy_bytes_per_second_);
}

void TailSignal::learn(const SignalWindow& healthy) {
  const double tail = tail_of(healthy.pooled);
  if (tail >= busy_.seconds().value_or(0)) {
    const double part = 1 - std::exp(-healthy.seconds() / Baseline::kRiseSeconds);
    busy_ios_per_second_ += part * (healthy.around.ios_per_second - busy_ios_per_second_);
    busy_bytes_per_second_ += part * (healthy.around.bytes_per_second - busy_bytes_per_second_);
  }
  recent_.learn(healthy.begin, healthy.end, tail);
  busy_.learn(healthy.begin, healthy.end, tail);
}

void TailSignal::forget_held() {
  recent_.forget_held();
  busy_.forget_held();
}

void TailSignal::open() {
  forget_held();
  changed_ = Baseline{};
}

void TailSignal::learn_changed(const SignalWindow& slow) { changed_.learn(slow.begin, slow.end, tail_of(slow.pooled)); }

bool TailSignal::accept() {
  if (changed_.seconds()) {
    recent_.accept(*changed_.seconds());
    busy_.accept(*changed_.seconds());
  }
  return changed_.seconds().has_value();
}

std::optional<model::SpikeBaseline> TailSignal::baseline() const {
  const auto seconds = baseline_seconds();
  return seconds ? std::optional(model::SpikeBaseline{*seconds, chosen().learned_seconds()}) : std::nullopt;
}

double TailSignal::limit(double floor_seconds) const {
  return std::max(floor_seconds, kTimesBaseline * baseline_seconds().value_or(0));
}

std::optional<Evidence> ExcessSignal::evaluate(const SignalWindow& now, double limit, double floor_seconds) {
  const auto is_long = find_long(now, limit);
  const auto broad = find_broad(now, floor_seconds);
  last_seconds_ = now.seconds();
  last_ios_ = static_cast<double>(now.io.ios);
  return is_long ? is_long : broad;
}

/// In a stall, a process that issues one read at a time has one slow I/O, and then many fast ones.
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
  const double max_load = now.in_spike ? kMuchMoreLoad : kMoreLoad;
  const bool with_others = now.around.load >= max_load;
  const bool starved = with_others && gets_less_done(now);
  const bool hardly_any = starved && now.around.senders_just_now <= kHardlyAnyShare;
  const double times = !with_others ? kTimesUsual
                       : hardly_any ? kTimesStarved
                       : starved    ? kTimesUsual
                                    : kTimesWithOthers;
  const double limit = mean && median ? std::max(floor_seconds, times * *mean) : 0;
  const bool same_load = now.around.own_load > 0 && now.around.own_load < max_load;
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

std::optional<Evidence> OutlierSignal::evaluate(const SignalWindow& now, double limit) {
  Evidence slow = evidence_beyond(now, limit);
  slow.kind = EvidenceKind::rare;
  slow.tail = slow.slowest;
  slow.alone = true;
  parts_.push_back({now.begin, now.end, now.io.total.count(), slow.ios,
                    count_above(now.io.total.words, std::max(limit, kLongSeconds)),
                    seconds_above(now.io.total.words, 0), seconds_above(now.io.total.words, limit)});
  const Part all = sum_up(now.end);
  if (slow.ios == 0 || now.in_spike) {
    return slow.ios == 0 ? std::nullopt : std::optional(slow);
  }
  const bool rare = static_cast<double>(all.outliers) <= (1 - kTail) * static_cast<double>(all.ios);
  const double error = 1 / std::sqrt(static_cast<double>(std::max<std::uint64_t>(all.outliers, 1)));
  const bool much = last_share_ >= std::max(kMinShare * (1 + kErrors * error), kTimesUsual * usual_share_);
  if (all.outliers < kMinOutliers || all.ios < kMinAllIos || !rare || (!much && !too_many_long(all))) {
    return std::nullopt;
  }
  const auto first = std::find_if(parts_.begin(), parts_.end(), [](const Part& part) { return part.outliers > 0; });
  slow.since = first->begin;
  slow.ios = all.outliers;
  return slow;
}

OutlierSignal::Part OutlierSignal::sum_up(SteadyTime end) {
  while (seconds_between(parts_.front().end, end) >= kPoolSeconds) {
    learn(parts_.front());
    parts_.pop_front();
  }
  Part all;
  for (const Part& part : parts_) {
    all.ios += part.ios;
    all.outliers += part.outliers;
    all.long_outliers += part.long_outliers;
    all.waited += part.waited;
    all.outliers_waited += part.outliers_waited;
  }
  last_share_ = all.waited > 0 ? all.outliers_waited / all.waited : 0;
  return all;
}

/// With few I/Os before, it is not known that long ones are unusual: so one more than was seen counts as usual.
bool OutlierSignal::too_many_long(const Part& all) const {
  const double share = static_cast<double>(all.long_outliers) / static_cast<double>(all.ios);
  return all.long_outliers >= kMinOutliers && share >= kMinLongShare &&
         share * usual_ios_ >= kTimesUsualLong * (usual_long_ + 1);
}

void OutlierSignal::learn(const Part& left) {
  const double past = std::exp(-seconds_between(left.begin, left.end) / kUsualLongSeconds);
  usual_ios_ = past * usual_ios_ + static_cast<double>(left.ios);
  usual_long_ = past * usual_long_ + static_cast<double>(left.long_outliers);
}

void OutlierSignal::open() { parts_.clear(); }

void OutlierSignal::accept() {
  usual_share_ = last_share_;
  usual_long_ = usual_ios_;  // nothing is unusual until enough of the new normal was seen
}

std::optional<Evidence> StallSignal::evaluate(const SignalWindow& now, double limit) {
  const double slowest = now.io.ios > 0 ? slowest_seconds(now.io.total.words) : 0;
  correct_leaks(now, slowest);
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

/// Fewer are in flight, or an I/O has completed that was in flight all through that stall. The longest latency that can
/// be recognized is kLongestSeconds.
void StallSignal::correct_leaks(const SignalWindow& now, double slowest) {
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
  absent_.reset();
  confirmed_ = false;
}

bool StallSignal::plausible(const SignalWindow& now) {
  if (now.around.kernel_in_flight) {
    const std::int64_t absent = std::max<std::int64_t>(0, now.io.least_in_flight() - *now.around.kernel_in_flight);
    if (absent_ && std::min(absent, *absent_) > leaked_) {
      leaked_ = std::min(absent, *absent_);
      leaked_since_ = *since_;
    }
    absent_ = absent;
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
  const bool from_its_begin = slow.share >= kNearlyAllOfWindow && slow.slowest < kAloneSeconds;
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
  const bool to_its_end = slow.ios == 0 || slow.share >= kNearlyAllOfWindow;
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
