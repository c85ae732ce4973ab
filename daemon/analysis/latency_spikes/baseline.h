// SPDX-License-Identifier: Apache-2.0
// Baseline: how slow one operation of one device is when nothing is wrong.
//
// The upper envelope of one statistic of the operation's windows (99th percentile, mean or median), in octaves. It
// follows a slow rise within seconds, so that a growing load is not a spike, and a fall over tens of minutes, so that a
// quiet night does not turn the morning into one. Each window is held back for a few seconds before it counts: those
// just before a spike may be part of it, and are dropped when it opens. Windows within a spike never count.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "daemon/analysis/latency_spikes/io_window.h"

namespace ssdpulse::analysis {

class Baseline {
 public:
  static constexpr double kRiseSeconds = 15;  // time constants
  static constexpr double kFallSeconds = 1200;
  static constexpr double kHoldSeconds = 6;
  static constexpr double kMinSeconds = 5;  // of healthy windows, at least two; with less, nothing is known

  explicit Baseline(double fall_seconds = kFallSeconds) : fall_seconds_(fall_seconds) {}

  /// Learns a healthy window's figure. A long window (after missed ticks) counts for more.
  void learn(SteadyTime begin, SteadyTime end, double figure_seconds);
  /// Call when a spike opens.
  void forget_held() { held_.clear(); }
  /// Call when what was a spike has become the new normal.
  void accept(double figure_seconds);

  [[nodiscard]] std::optional<double> seconds() const;
  /// Of healthy windows, together.
  [[nodiscard]] double learned_seconds() const { return learned_seconds_; }

 private:
  struct Held {
    SteadyTime end;
    double seconds;
    double octave;
  };
  void take(const Held& held);

  double fall_seconds_;
  std::deque<Held> held_;
  double octave_ = 0;
  double learned_seconds_ = 0;
  std::size_t windows_ = 0;
};

}  // namespace ssdpulse::analysis
