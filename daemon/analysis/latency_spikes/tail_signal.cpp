// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/tail_signal.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::analysis {
namespace {

double tail_of(const SparseBuckets& buckets) { return upper_bound_seconds(quantile_bucket(buckets, kTail)); }

}  // namespace

std::optional<Evidence> TailSignal::evaluate(const SignalWindow& now, double limit) const {
  if (!now.enough || quantile_bucket(now.pooled, kTail) < first_word_above(limit)) {
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

}  // namespace ssdpulse::analysis
