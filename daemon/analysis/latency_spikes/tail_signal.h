// SPDX-License-Identifier: Apache-2.0
// TailSignal: whether the 99th percentile of total latency is beyond its limit. The limit is kTimesBaseline times the
// baseline, and never below the floor.
//
// There are two baselines. The recent one falls within minutes: a bulk load is a load, not what is usual afterwards.
// The one of busy times falls within tens of minutes, and counts only while there is more load than recently, about as
// much as when it was learned: load that returns is not a spike.
#pragma once

#include <optional>

#include "daemon/analysis/latency_spikes/baseline.h"
#include "daemon/analysis/latency_spikes/signal.h"

namespace ssdpulse::analysis {

class TailSignal {
 public:
  static constexpr double kTimesBaseline = 4;
  static constexpr double kRecentFallSeconds = 60;  // time constant
  static constexpr double kMoreLoad = 1.25;         // than recently
  static constexpr double kAsBusy = 0.25;           // of the I/Os and of the bytes of busy times

  [[nodiscard]] std::optional<Evidence> evaluate(const SignalWindow& now, double limit) const;

  /// Call first for each window: the load decides which baseline counts. In a spike, it stays the one of its begin.
  void choose(const SignalWindow& now);
  void learn(const SignalWindow& healthy);
  /// Call while what was seen last may be part of a spike of another operation.
  void forget_held();
  /// Call when a spike opens; if it lasts, its own windows show the new normal.
  void open();
  void learn_changed(const SignalWindow& slow);
  /// The spike has lasted. False if too few windows were seen to know the new normal.
  bool accept();

  [[nodiscard]] double limit(double floor_seconds) const;
  [[nodiscard]] std::optional<double> baseline_seconds() const { return chosen().seconds(); }
  [[nodiscard]] std::optional<model::SpikeBaseline> baseline() const;

 private:
  [[nodiscard]] const Baseline& chosen() const { return is_busy_ ? busy_ : recent_; }

  Baseline recent_{kRecentFallSeconds};
  Baseline busy_;
  double busy_ios_per_second_ = 0;  // when it was learned
  double busy_bytes_per_second_ = 0;
  bool is_busy_ = true;
  Baseline changed_;
};

}  // namespace ssdpulse::analysis
