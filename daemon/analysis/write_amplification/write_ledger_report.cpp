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

void show(std::vector<model::WriteAmplificationRatio>& ratios, const char* name, Time covered, Time age,
          const std::optional<RatioBounds>& bounds) {
  if (bounds && worth_showing(*bounds)) {
    ratios.push_back({name, seconds_of(covered), seconds_of(age), bounds->ratio, bounds->lower, bounds->upper});
  }
}

}  // namespace

std::vector<model::WriteAmplificationRatio> WriteLedger::ratios() const {
  std::vector<model::WriteAmplificationRatio> ratios;
  const RatioWindows::Lags lags{host_lag_.lag(poll_interval_), media_lag_.lag(poll_interval_)};
  const auto newest = windows_.newest(lags);
  if (!newest || !comparable()) {
    return ratios;
  }
  const Time age = windows_.newest_at() - newest->at;
  for (const RatioWindows::Named& one : RatioWindows::kNamed) {
    if (const auto window = windows_.window(one.width, lags)) {
      const auto& [begin, end] = *window;
      show(ratios, one.name, end.at - begin.at, age,
           ratio_of(media_.format().difference(begin.media, end.media),
                    host_.format().difference(begin.host, end.host)));
    }
  }
  if (counted_since_birth_) {
    show(ratios, "lifetime", Time{0}, age,
         lifetime_.ratio(host_.since_birth(newest->host), media_.since_birth(newest->media)));
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
  said.ratios = ratios();
  for (const auto& life : {wear_.life_remaining(), life_by_media()}) {
    if (life) {
      said.life_remaining.push_back(*life);
    }
  }
  return said;
}

}  // namespace ssdpulse::analysis
