// SPDX-License-Identifier: Apache-2.0
#include "daemon/wear/counted_bytes.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::wear {
namespace {

/// A drive that shows something else for longer has other counters now.
constexpr auto kMaxGap = std::chrono::hours(1);

/// The largest (top + some of the tops)/(bottom + the matching bottoms). Every addition whose ratio is above the best
/// so far raises it, and none below the best can belong to it: ends after at most one round per addition.
template <typename Falls, typename Top, typename Bottom>
double largest_ratio(double top, double bottom, const Falls& falls, Top top_of, Bottom bottom_of) {
  double best = top / bottom;
  while (true) {
    double a = top;
    double b = bottom;
    for (const auto& fall : falls) {
      if (top_of(fall) > best * bottom_of(fall)) {
        a += top_of(fall);
        b += bottom_of(fall);
      }
    }
    if (!(a / b > best)) {
      return best;
    }
    best = a / b;
  }
}

}  // namespace

Interval CounterFormat::interval(CountRange counts) const {
  return {subtract(bytes(counts.low), below()), add(bytes(counts.high), above())};
}

Interval CounterFormat::difference(CountRange from, CountRange to) const {
  return {subtract(bytes(subtract(to.low, from.high)), doubt()), add(bytes(subtract(to.high, from.low)), doubt())};
}

RatioBounds rounded_outwards(RatioBounds bounds) {
  constexpr double kRounding = 0x1p-48;
  bounds.lower *= 1 - kRounding;
  bounds.upper *= 1 + kRounding;
  bounds.ratio = std::clamp(bounds.ratio, bounds.lower, bounds.upper);
  return bounds;
}

bool worth_showing(const RatioBounds& bounds) {
  constexpr double kMaxWidth = 0.2;
  return std::isfinite(bounds.upper) && bounds.ratio > 0 && bounds.upper - bounds.lower <= kMaxWidth * bounds.ratio;
}

std::optional<RatioBounds> ratio_of(Interval media, Interval host) {
  if (host.low == 0 || host.high == kUnbounded || media.high == 0 || media.high == kUnbounded) {
    return std::nullopt;
  }
  const auto middle = [](Interval bytes) {
    return (static_cast<double>(bytes.low) + static_cast<double>(bytes.high)) / 2;
  };
  return rounded_outwards({static_cast<double>(media.low) / static_cast<double>(host.high),
                           middle(media) / middle(host),
                           static_cast<double>(media.high) / static_cast<double>(host.low)});
}

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

bool WrittenTotal::breaks(const CounterFormat& format, CountRange next) const {
  const bool other_unit = format_.known() && !(effective(format) == format_);
  return seen() && (other_unit || next.low < last().high);
}

std::optional<WrittenTotal::Fall> WrittenTotal::fall(const CounterFormat& format, CountRange next,
                                                     Uint128 max_written) const {
  const CounterFormat after = effective(format);
  const Interval shown = after.interval(next);
  const Uint128 old_bytes = format_.bytes(last().high);
  const Uint128 new_bytes = after.bytes(next.high);
  if (!seen() || !(after == format_ ? next.low < last().high : new_bytes < old_bytes)) {
    return std::nullopt;
  }
  const bool can_have_restarted = !after.known() || shown.low <= max_written;
  return Fall{can_have_restarted ? shown : Interval{}, can_have_restarted && new_bytes < old_bytes / 2};
}

Interval WrittenTotal::lost(const CounterFormat& format, CountRange next) const {
  return subtract(format_.interval(last()), effective(format).interval(next));
}

bool WrittenTotal::comes_back(Uint128 shown, std::chrono::nanoseconds at) const {
  return before_ && at >= before_->at && at - before_->at <= kMaxGap && shown >= before_->shown &&
         shown - before_->shown <= most_bytes_in(at - before_->at);
}

void WrittenTotal::set_total(Uint128 total, Uint128 shown) {
  earlier_ = subtract(total, shown);
  overstated_ = subtract(shown, total);
}

void WrittenTotal::begin_epoch(const CounterFormat& format, CountRange next, const std::optional<Fall>& fall,
                               const Passage& passage) {
  const Uint128 old_bytes = format_.bytes(last().high);
  const Uint128 new_bytes = effective(format).bytes(next.high);
  const Uint128 total = bytes();
  const bool leaps =
      format_.known() && effective(format) == format_ && subtract(new_bytes, old_bytes) > passage.writable;
  earlier_bounds_ = add(earlier_bounds_, lost(format, next));
  format_ = effective(format);
  last_ = next;
  if (comes_back(new_bytes, passage.at)) {
    set_total(std::max(total, add(before_->total, new_bytes - before_->shown)), new_bytes);
    before_.reset();
    return;
  }
  if ((fall || leaps) && !(before_ && passage.at - before_->at <= kMaxGap)) {
    before_ = Before{passage.last_at, old_bytes, total};
  }
  const Uint128 growth = fall && fall->restarted ? new_bytes : leaps ? 0 : subtract(new_bytes, old_bytes);
  set_total(add(total, growth), new_bytes);
}

void WrittenTotal::advance(const CounterFormat& format, CountRange next) {
  format_ = effective(format);
  last_ = next;
}

void WrittenTotal::learn(const CounterFormat& format) {
  earlier_ = format.relearn(earlier_);
  earlier_bounds_ = format.relearn(earlier_bounds_);
  overstated_ = format.relearn(overstated_);
  before_.reset();
  format_ = format;
}

void Lifetime::add_falls(const CounterFall& host, const CounterFall& media, bool certain) {
  if (host && media && host->restarted == media->restarted) {
    falls_.push_back({host->if_restarted, media->if_restarted, certain && host->restarted});
  } else {
    if (host) {
      falls_.push_back({host->if_restarted, {}, certain && host->restarted});
    }
    if (media) {
      falls_.push_back({{}, media->if_restarted, certain && media->restarted});
    }
  }
  if (lost_ || falls_.size() > kMaxFalls) {
    lose();
  }
}

void Lifetime::fell(const CounterFall& host, const CounterFall& media) { add_falls(host, media, true); }

void Lifetime::may_have_fallen(const CounterFall& host, Interval host_lost, const CounterFall& media,
                               Interval media_lost) {
  falls_.push_back({host_lost, media_lost, false});
  add_falls(host, media, false);
}

void Lifetime::learn_host(const CounterFormat& format) {
  for (Fall& fall : falls_) {
    fall.host = format.relearn(fall.host);
  }
}

void Lifetime::learn_media(const CounterFormat& format) {
  for (Fall& fall : falls_) {
    fall.media = format.relearn(fall.media);
  }
}

std::optional<RatioBounds> Lifetime::ratio(Interval host, Interval media) const {
  Interval all_host = host;
  Interval all_media = media;
  Interval likely_host = host;
  Interval likely_media = media;
  for (const Fall& fall : falls_) {
    all_host = add(all_host, fall.host);
    all_media = add(all_media, fall.media);
    if (fall.restarted) {
      likely_host = add(likely_host, fall.host);
      likely_media = add(likely_media, fall.media);
    }
  }
  const auto likely = ratio_of(likely_media, likely_host);
  if (lost_ || !likely || host.low == 0 || all_host.high == kUnbounded || all_media.high == kUnbounded) {
    return std::nullopt;
  }
  RatioBounds bounds;
  bounds.ratio = likely->ratio;
  bounds.upper = largest_ratio(
      static_cast<double>(media.high), static_cast<double>(host.low), falls_,
      [](const Fall& fall) { return static_cast<double>(fall.media.high); },
      [](const Fall& fall) { return static_cast<double>(fall.host.low); });
  if (media.low == 0) {
    bounds.lower = 0;
  } else {
    bounds.lower = 1 / largest_ratio(
                           static_cast<double>(host.high), static_cast<double>(media.low), falls_,
                           [](const Fall& fall) { return static_cast<double>(fall.host.high); },
                           [](const Fall& fall) { return static_cast<double>(fall.media.low); });
  }
  return rounded_outwards(bounds);
}

}  // namespace ssdpulse::wear
