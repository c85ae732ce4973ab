// SPDX-License-Identifier: Apache-2.0
// TailSignal: whether the 99th percentile of total latency is beyond its limit. The limit is kTimesBaseline times the
// baseline, and never below the floor.
#pragma once

#include <optional>

#include "daemon/analysis/latency_spikes/baseline.h"
#include "daemon/analysis/latency_spikes/signal.h"

namespace ssdpulse::analysis {

class TailSignal {
 public:
  static constexpr double kTimesBaseline = 4;

  [[nodiscard]] std::optional<Evidence> look(const SignalWindow& now, double limit) const;

  void learn(const SignalWindow& healthy);
  /// Call when a spike opens; if it lasts, its own windows show the new normal.
  void open();
  void learn_changed(const SignalWindow& slow);
  /// The spike has lasted. False if too few windows were seen to know the new normal.
  bool accept();

  [[nodiscard]] double limit(double floor_seconds) const;
  [[nodiscard]] std::optional<double> baseline_seconds() const { return baseline_.seconds(); }
  [[nodiscard]] std::optional<model::SpikeBaseline> baseline() const;

 private:
  Baseline baseline_;
  Baseline changed_;
};

}  // namespace ssdpulse::analysis
