// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/tail_signal.h"

#include <algorithm>

namespace ssdpulse::analysis {
namespace {

double tail_of(const LatencyWords& words) { return upper_bound_seconds(quantile_word(words, kTail)); }

}  // namespace

std::optional<Evidence> TailSignal::look(const SignalWindow& now, double limit) const {
  if (!now.enough || quantile_word(now.pooled, kTail) < first_word_above(limit)) {
    return std::nullopt;
  }
  Evidence slow = evidence_beyond(now, limit);
  slow.alone = slow.tail >= kAloneSeconds;
  // One I/O that took a little longer is chance.
  return slow.ios >= 2 ? std::optional(slow) : std::nullopt;
}

void TailSignal::learn(const SignalWindow& healthy) {
  baseline_.learn(healthy.begin, healthy.end, tail_of(healthy.pooled));
}

void TailSignal::open() {
  baseline_.forget_held();
  changed_ = Baseline{};
}

void TailSignal::learn_changed(const SignalWindow& slow) { changed_.learn(slow.begin, slow.end, tail_of(slow.pooled)); }

bool TailSignal::accept() {
  if (changed_.seconds()) {
    baseline_.accept(*changed_.seconds());
  }
  return changed_.seconds().has_value();
}

std::optional<model::SpikeBaseline> TailSignal::baseline() const {
  const auto seconds = baseline_.seconds();
  return seconds ? std::optional(model::SpikeBaseline{*seconds, baseline_.learned_seconds()}) : std::nullopt;
}

double TailSignal::limit(double floor_seconds) const {
  return std::max(floor_seconds, kTimesBaseline * baseline_.seconds().value_or(0));
}

}  // namespace ssdpulse::analysis
