// SPDX-License-Identifier: Apache-2.0
// What a ledger reports: totals, ratios, drift and remaining life, as values of the model.
#include <algorithm>
#include <cmath>

#include "daemon/analysis/write_amplification/write_ledger.h"

namespace ssdpulse::analysis {
namespace {

using Time = WriteLedger::Time;
using std::chrono::hours;

double seconds_of(Time time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

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
  for (const RatioWindows::Named& one : RatioWindows::kNamed) {
    const auto window = windows_.window(one.width, lags);
    if (window && show_window(one.name, *window)) {
      continue;
    }
    if (const auto at_refreshes = refreshed(one.width)) {
      show_window(one.name, at_refreshes->window);
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
  model::WriteAmplification said;
  said.since = since_;
  said.epochs = epochs_;
  if (host_.seen() && host_.format().known()) {
    said.host_written_bytes = static_cast<double>(host_.bytes());
    said.host_doubt_bytes = static_cast<double>(host_.format().doubt());
  }
  if (media_.seen() && media_.format().known()) {
    said.media_written_bytes = static_cast<double>(media_.bytes());
    said.media_doubt_bytes = static_cast<double>(media_.format().doubt());
    said.idle_media_written_bytes = static_cast<double>(idle_media_);
  }
  if (const auto drift = drift_.drift()) {
    said.host_written_drift_bytes = drift->likely;
    said.host_written_drift_lower_bytes = drift->lower;
    said.host_written_drift_upper_bytes = drift->upper;
  }
  bool impossible = false;
  said.ratios = ratios(impossible);
  if (impossible) {
    said.withheld = "its media counter grew by less than the host's, which no drive does that does not compress";
  }
  for (const auto& life : {wear_.life_remaining(), life_by_media()}) {
    if (life) {
      said.life_remaining.push_back(*life);
    }
  }
  return said;
}

}  // namespace ssdpulse::analysis
