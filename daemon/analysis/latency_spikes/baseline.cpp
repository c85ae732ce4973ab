// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/baseline.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::analysis {
namespace {

constexpr double kLeastTail = 1e-6;  // the first bucket: nothing is shorter, and 0 has no octave

/// A long silence is no reason to believe the first window after it more than others.
constexpr double kMostStep = 5;

double octave_of(double seconds) { return std::log2(std::max(seconds, kLeastTail)); }

}  // namespace

void Baseline::learn(SteadyTime at, double tail_seconds) {
  held_.push_back({at, octave_of(tail_seconds)});
  while (seconds_between(held_.front().at, at) >= kHoldSeconds) {
    take(held_.front());
    held_.pop_front();
  }
}

void Baseline::take(const Held& held) {
  const double step = last_ ? std::clamp(seconds_between(*last_, held.at), 0.0, kMostStep) : 1;
  const double constant = held.octave > octave_ ? kRiseSeconds : kFallSeconds;
  double weight = 1 - std::exp(-step / constant);
  if (windows_ < kLeastWindows) {
    weight = std::max(weight, 1 / static_cast<double>(windows_ + 1));
  }
  octave_ += weight * (held.octave - octave_);
  last_ = held.at;
  ++windows_;
}

void Baseline::accept(double tail_seconds) {
  held_.clear();
  octave_ = octave_of(tail_seconds);
  windows_ = std::max(windows_, kLeastWindows);
}

std::optional<double> Baseline::seconds() const {
  return windows_ < kLeastWindows ? std::nullopt : std::optional(std::exp2(octave_));
}

}  // namespace ssdpulse::analysis
