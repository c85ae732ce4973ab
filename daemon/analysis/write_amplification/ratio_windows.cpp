// SPDX-License-Identifier: Apache-2.0
// Thins out readings, and finds the true counts at a given time from lagging counters.
#include "daemon/analysis/write_amplification/ratio_windows.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace ssdpulse::analysis {
namespace {

using Time = RatioWindows::Time;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

struct Tier {
  Time age;      // up to this age
  Time spacing;  // one reading per spacing; a multiple of the previous one, so that coarser tiers keep a subset
};
constexpr auto kTiers = std::to_array<Tier>(
    {{minutes(5), seconds(2)}, {hours(1), minutes(1)}, {hours(24), minutes(10)}, {hours(24 * 7), hours(1)}});

std::chrono::nanoseconds::rep cell(Time at, Time spacing) {
  const auto whole = at / spacing;
  return at < whole * spacing ? whole - 1 : whole;
}

}  // namespace

void RatioWindows::add(const WritePoint& point) {
  if (!points_.empty()) {
    const WritePoint& last = points_.back();
    if (point.at == last.at) {
      return;
    }
    if (point.at < last.at || point.host.low < last.host.high || point.media < last.media) {
      points_.clear();
    }
  }
  points_.push_back(point);
  thin();
}

void RatioWindows::thin() {
  const Time now = points_.back().at;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const Time at = points_[i].at;
    const auto tier = std::find_if(kTiers.begin(), kTiers.end(), [&](const Tier& one) { return now - at <= one.age; });
    const bool newest = i + 1 == points_.size();
    const bool first_of_cell =
        tier != kTiers.end() && (kept == 0 || cell(points_[kept - 1].at, tier->spacing) != cell(at, tier->spacing));
    if (newest || first_of_cell) {
      points_[kept++] = points_[i];
    }
  }
  points_.resize(kept);
}

RatioWindows::Iterator RatioWindows::newest_known(const Lags& lags) const {
  if (points_.empty()) {
    return points_.end();
  }
  const auto after =
      std::upper_bound(points_.begin(), points_.end(), points_.back().at - std::max(lags.host, lags.media),
                       [](Time at, const WritePoint& point) { return at < point.at; });
  return after == points_.begin() ? points_.end() : after - 1;
}

RatioWindows::Moment RatioWindows::moment(Iterator point, const Lags& lags) const {
  const auto seen_after = [&](Time lag) {
    return std::lower_bound(point, points_.end(), point->at + lag,
                            [](const WritePoint& one, Time at) { return one.at < at; });
  };
  return {
      point->at, {point->host.low, seen_after(lags.host)->host.high}, {point->media, seen_after(lags.media)->media}};
}

std::optional<RatioWindows::Moment> RatioWindows::newest(const Lags& lags) const {
  const auto end = newest_known(lags);
  return end == points_.end() ? std::nullopt : std::optional(moment(end, lags));
}

std::optional<RatioWindows::Window> RatioWindows::window(Time width, const Lags& lags) const {
  const auto end = newest_known(lags);
  if (end == points_.end()) {
    return std::nullopt;
  }
  const auto begin = std::lower_bound(points_.begin(), end, end->at - width,
                                      [](const WritePoint& one, Time at) { return one.at < at; });
  if (begin == end) {
    return std::nullopt;
  }
  return Window{moment(begin, lags), moment(end, lags)};
}

bool RatioWindows::both_moved(Iterator point) const {
  return point != points_.begin() && point->host.high != (point - 1)->host.high && point->media != (point - 1)->media;
}

std::optional<RatioWindows::Refreshed> RatioWindows::refreshed(Time width) const {
  auto end = points_.empty() ? points_.end() : points_.end() - 1;
  while (end != points_.begin() && end != points_.end() && !both_moved(end)) {
    --end;
  }
  if (end == points_.begin() || end == points_.end()) {
    return std::nullopt;
  }
  auto begin = std::lower_bound(points_.begin(), end, end->at - width,
                                [](const WritePoint& one, Time at) { return one.at < at; });
  while (begin != end && !both_moved(begin)) {
    ++begin;
  }
  if (begin == end) {
    return std::nullopt;
  }
  const auto moment = [](Iterator point) { return Moment{point->at, point->host, {point->media, point->media}}; };
  const auto step = [](Iterator point) { return subtract(point->host.high, (point - 1)->host.low); };
  return Refreshed{{moment(begin), moment(end)}, analysis::add(step(begin), step(end))};
}

}  // namespace ssdpulse::analysis
