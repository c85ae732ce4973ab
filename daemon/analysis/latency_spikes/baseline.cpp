// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/baseline.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::analysis {
namespace {

constexpr double kShortestSeconds = 1e-6;  // the first bucket: nothing is shorter, and 0 has no octave

constexpr double kMaxSeconds = 5;  // the most that one window counts for
constexpr std::size_t kMinWindows = 2;

double octave_of(double seconds) { return std::log2(std::max(seconds, kShortestSeconds)); }

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

}  // namespace ssdpulse::analysis
