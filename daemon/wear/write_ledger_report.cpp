// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "daemon/wear/write_ledger.h"

namespace ssdpulse::wear {

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

bool is_before(const WritePoint& point, Time at) { return point.at < at; }

std::chrono::nanoseconds::rep cell(Time at, Time spacing) {
  const auto whole = at / spacing;
  return at < whole * spacing ? whole - 1 : whole;
}

/// The cause of an epoch, for the log.
std::string cause_of(const Lifetime::CounterFall& host, const Lifetime::CounterFall& media, bool other_firmware,
                     bool interrupted) {
  const auto fate = [](const WrittenTotal::Fall& fall) { return fall.restarted ? " restarted" : " rolled back"; };
  std::string cause;
  if (host) {
    cause = std::string("host counter") + fate(*host);
  }
  if (media) {
    cause += (cause.empty() ? "" : ", ") + std::string("media counter") + fate(*media);
  }
  if (!cause.empty()) {
    return cause;
  }
  return other_firmware ? "another firmware" : interrupted ? "readings that contradict each other" : "another unit";
}

double seconds_of(Time time) { return std::chrono::duration<double>(time).count(); }

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
    const auto tier =
        std::find_if(kTiers.begin(), kTiers.end(), [&](const Tier& candidate) { return now - at <= candidate.age; });
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
  const auto seen_after = [&](Time lag) { return std::lower_bound(point, points_.end(), point->at + lag, is_before); };
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
  const auto begin = std::lower_bound(points_.begin(), end, end->at - width, is_before);
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
  auto begin = std::lower_bound(points_.begin(), end, end->at - width, is_before);
  while (begin != end && !both_moved(begin)) {
    ++begin;
  }
  if (begin == end) {
    return std::nullopt;
  }
  const auto moment = [](Iterator point) { return Moment{point->at, point->host, {point->media, point->media}}; };
  const auto step = [](Iterator point) { return subtract(point->host.high, (point - 1)->host.low); };
  return Refreshed{{moment(begin), moment(end)}, wear::add(step(begin), step(end))};
}

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
  const auto rise = last.percent - first.percent;
  if (rise < kMinRise || last.first_at == first.first_at) {  // two sightings at the same time give no rate
    return std::nullopt;
  }
  Time window = last.first_at - first.first_at;
  double risen = static_cast<double>(rise);
  if (now_ - last.first_at > window / rise) {
    window = now_ - first.first_at;
    risen += 1;  // the next percent has not come yet: less than this was used
  }
  const double seconds = std::chrono::duration<double>(window).count();
  // A drive beyond its rated life has 0 s left, not less.
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

void WriteLedger::break_off() {
  windows_.clear();
  idle_since_.reset();
  drift_.forget_begin();
  block_.reset();
}

void WriteLedger::interrupt() {
  lifetime_.lose();
  break_off();
  interrupted_ = true;
}

void WriteLedger::open_epoch(Time at, std::string cause, Epoch::Counts then) {
  break_off();
  ++epochs_;
  epoch_at_ = at;
  epoch_ = Epoch{at, std::move(cause), {host_.last().high, media_.last().high}, then};
}

/// As CounterLag explains, a counter that seems to follow may still be almost 3 polls late.
WriteLedger::Time WriteLedger::behind(const CounterLag& lag) const {
  return lag.lag(poll_interval_) + 3 * poll_interval_;
}

Uint128 WriteLedger::max_written_since(Time at, const CounterLag& lag) const {
  return timed_ ? most_bytes_in(at - at_ + behind(lag)) : kUnbounded;
}

/// The very first reading proves nothing: a leap after it may as well be its error.
WrittenTotal::Passage WriteLedger::passage_to(Time at, const CounterFormat& format, const CounterLag& lag) const {
  const Uint128 writable = most_bytes_in(timed_ ? at - at_ + behind(lag) : Time(kLongestAbsence));
  return {at_, at, readings_ < 2 ? kUnbounded : add(writable, multiply(2, format.doubt() + 1))};
}

Lifetime::CounterFall WriteLedger::host_fall(const Reading& reading) const {
  return host_.fall(reading.host_format, reading.host, max_written_since(reading.at, host_lag_));
}

Lifetime::CounterFall WriteLedger::media_fall(const Reading& reading) const {
  return reading.media ? media_.fall(reading.media_format, {*reading.media, *reading.media},
                                     max_written_since(reading.at, media_lag_))
                       : std::nullopt;
}

void WriteLedger::begin_epoch(const Reading& reading, const std::string& firmware) {
  const auto host = host_fall(reading);
  const auto media = media_fall(reading);
  open_epoch(reading.at, cause_of(host, media, firmware != firmware_, interrupted_),
             {reading.host.high, reading.media.value_or(0)});
  host_.begin_epoch(reading.host_format, reading.host, host, passage_to(reading.at, reading.host_format, host_lag_));
  if (reading.media && media_.seen()) {
    media_.begin_epoch(reading.media_format, {*reading.media, *reading.media}, media,
                       passage_to(reading.at, reading.media_format, media_lag_));
  }
  if (interrupted_ && !host && !media) {
    lifetime_.lose();  // the restarted counter has already grown beyond its old value
  }
  lifetime_.fell(host, media);
  host_lag_ = CounterLag();
  media_lag_ = CounterLag();
  refresh_ = {};
  if (firmware != firmware_) {
    drift_ = HostDrift();
  }
}

void WriteLedger::doubt(const WriteSample& sample, bool fell_further) {
  const auto reading = usable(sample);
  if (reading && !fell_further) {
    const Interval media_lost =
        reading->media ? media_.lost(reading->media_format, {*reading->media, *reading->media}) : Interval{};
    lifetime_.may_have_fallen(host_fall(*reading), host_.lost(reading->host_format, reading->host),
                              media_fall(*reading), media_lost);
  } else {
    lifetime_.lose();
  }
  const auto shown = [](const std::optional<model::ByteCounter>& counter) { return counter ? counter->count : 0; };
  host_lag_.forget_times();
  media_lag_.forget_times();
  open_epoch(sample.at, "a fall that the next reading did not confirm",
             {shown(sample.host_after), shown(sample.media)});
}

bool WriteLedger::cannot_be(Interval media, Interval host) const {
  return !compresses_ && add(media.high, kMaxBufferedBytes) < host.low;
}

std::optional<RatioWindows::Refreshed> WriteLedger::refreshed(Time width) const {
  if (!refreshes_together()) {
    return std::nullopt;
  }
  auto found = windows_.refreshed(width);
  if (found) {
    // Of a refresh's period, two readings are one poll apart.
    const double period = seconds_of(std::max(host_lag_.period(), media_lag_.period()));
    const double apart = refresh_.share_apart() * std::min(1.0, seconds_of(poll_interval_) / period);
    CountRange& end = found->window.end.host;
    const auto doubt = static_cast<Uint128>(std::ceil(static_cast<double>(found->host_steps) * apart));
    end = {subtract(end.low, doubt), add(end.high, doubt)};
  }
  return found;
}

std::vector<model::WriteAmplificationRatio> WriteLedger::ratios(bool& impossible) const {
  std::vector<model::WriteAmplificationRatio> ratios;
  const RatioWindows::Lags lags{host_lag_.lag(poll_interval_), media_lag_.lag(poll_interval_)};
  if (!comparable()) {
    return ratios;
  }
  const auto show = [&](const char* name, Time covered, Time end, Interval media, Interval host,
                        const std::optional<RatioBounds>& bounds) {
    if (!bounds || !worth_showing(*bounds)) {
      return false;
    }
    if (bounds->upper < 1 && cannot_be(media, host)) {
      impossible = true;
    } else {
      ratios.push_back({name, seconds_of(covered), seconds_of(windows_.newest_at() - end), bounds->ratio, bounds->lower,
                        bounds->upper});
    }
    return true;
  };
  const auto show_window = [&](const char* name, const RatioWindows::Window& window) {
    const auto& [begin, end] = window;
    const Interval media = media_.format().difference(begin.media, end.media);
    const Interval host = host_.format().difference(begin.host, end.host);
    return show(name, end.at - begin.at, end.at, media, host, ratio_of(media, host));
  };
  for (const auto& [name, width] : RatioWindows::kNamed) {
    const auto window = windows_.window(width, lags);
    if (window && show_window(name, *window)) {
      continue;
    }
    if (const auto at_refreshes = refreshed(width)) {
      show_window(name, at_refreshes->window);
    }
  }
  if (const auto newest = windows_.newest(lags); newest && counted_since_birth_) {
    const Interval host = host_.since_birth(newest->host);
    const Interval media = media_.since_birth(newest->media);
    show("lifetime", Time{0}, newest->at, media, host, lifetime_.ratio(host, media));
  }
  return ratios;
}

std::optional<model::LifeRemaining> WriteLedger::life_by_media() const {
  const auto& points = windows_.points();
  if (!endurance_estimate_ || endurance_estimate_->unit_bytes == 0 || !counted_since_birth_ ||
      !media_.format().known() || points.empty() || points.back().at - points.front().at < hours(1)) {
    return std::nullopt;
  }
  const Uint128 rated = multiply(endurance_estimate_->count, endurance_estimate_->unit_bytes);
  const Uint128 written = media_.format().bytes(points.back().media - points.front().media);
  return life_by_endurance(static_cast<double>(rated), static_cast<double>(media_.bytes()),
                           static_cast<double>(written), seconds_of(points.back().at - points.front().at));
}

model::WriteAmplification WriteLedger::amplification() const {
  model::WriteAmplification result;
  result.since = since_;
  result.epochs = epochs_;
  if (host_.seen() && host_.format().known()) {
    result.host_written_bytes = static_cast<double>(host_.bytes());
    result.host_doubt_bytes = static_cast<double>(host_.format().doubt());
  }
  if (media_.seen() && media_.format().known()) {
    result.media_written_bytes = static_cast<double>(media_.bytes());
    result.media_doubt_bytes = static_cast<double>(media_.format().doubt());
    result.idle_media_written_bytes = static_cast<double>(idle_media_);
  }
  if (const auto drift = drift_.drift()) {
    result.host_written_drift_bytes = drift->likely;
    result.host_written_drift_lower_bytes = drift->lower;
    result.host_written_drift_upper_bytes = drift->upper;
  }
  bool impossible = false;
  result.ratios = ratios(impossible);
  if (impossible) {
    result.withheld = "its media counter grew by less than the host's, which no drive does that does not compress";
  }
  for (const auto& life : {wear_.life_remaining(), life_by_media()}) {
    if (life) {
      result.life_remaining.push_back(*life);
    }
  }
  return result;
}

}  // namespace ssdpulse::wear
