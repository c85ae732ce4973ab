// SPDX-License-Identifier: Apache-2.0
#include "daemon/drives/back_off.h"

#include <algorithm>

#include "daemon/util/log.h"

namespace ssdpulse::drives {
namespace {

using namespace std::chrono_literals;

constexpr auto kAftermath = 50ms;  // how long after a log read an I/O may suffer from it
constexpr auto kQuietPeriod = 24h;

/// A drive whose reads and writes take this much longer near log reads is polled less often.
constexpr double kBearableEffect = 2.0;
constexpr unsigned kMaxIntervals = 8;

}  // namespace

unsigned PollBackoff::intervals(const std::string& model) const {
  const auto entry = by_model_.find(model);
  return entry == by_model_.end() ? 1 : entry->second.intervals;
}

bool PollBackoff::increase(const std::string& model, SteadyTime now) {
  Entry& entry = by_model_[model];
  entry.since = now;
  const bool grows = entry.intervals < kMaxIntervals;
  entry.intervals = std::min(entry.intervals * 2, kMaxIntervals);
  return grows;
}

bool PollBackoff::decrease(const std::string& model, SteadyTime now) {
  const auto entry = by_model_.find(model);
  if (entry == by_model_.end() || now - entry->second.since < kQuietPeriod) {
    return false;
  }
  entry->second.since = now;
  entry->second.intervals /= 2;
  if (entry->second.intervals == 1) {
    by_model_.erase(entry);
  }
  return true;
}

void LogReadWatch::poll_ended(SteadyTime now) { near_until_ = now + kAftermath; }

void LogReadWatch::measure(const model::LatencyBuckets& buckets, const std::string& model, SteadyTime now) {
  near_until_.reset();
  const auto restart = [&] {
    effect_ = {};
    measured_at_ = backoff_.intervals(model);
  };
  if (measured_at_ != backoff_.intervals(model)) {
    restart();  // a drive of the same model has changed the pace
  }
  if (const auto near = model::added(buckets_before_, buckets); near && !for_a_spike_) {
    effect_.add_near(*near);
  }
  if (const auto all = model::added(buckets_counted_, for_a_spike_ ? buckets_before_ : buckets)) {
    effect_.add_all(*all);
  }
  buckets_counted_ = buckets;
  ratio_ = effect_.ratio();
  if (ratio_ && *ratio_ > kBearableEffect) {
    if (backoff_.increase(model, now)) {
      restart();
      log::warning(
          "{} reads and writes take {:.1f} times as long near log reads: polling its drives {} times less often than "
          "configured",
          log::quoted("model", model), *ratio_, backoff_.intervals(model));
    }
  } else if (backoff_.decrease(model, now)) {
    restart();
    log::info("{} was calm for a day: polling its drives {} times less often than configured",
              log::quoted("model", model), backoff_.intervals(model));
  }
}

}  // namespace ssdpulse::drives
