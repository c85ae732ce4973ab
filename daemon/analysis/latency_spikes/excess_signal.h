// SPDX-License-Identifier: Apache-2.0
// ExcessSignal: was more time spent waiting than is usual?
//
// Either long I/Os are most of a second's waiting, as after a freeze: they are many, or the work of that time is
// missing. Or all I/Os are somewhat slower for longer: median and mean are both kTimesUsual times their usual value,
// without more load or larger I/Os. (A few I/Os move a mean, another mixture of sizes a median.)
#pragma once

#include <optional>

#include "daemon/analysis/latency_spikes/baseline.h"
#include "daemon/analysis/latency_spikes/signal.h"

namespace ssdpulse::analysis {

class ExcessSignal {
 public:
  static constexpr double kMostWaiting = 0.5;  // of a second's waiting, is that of long I/Os
  static constexpr double kFewShare = 0.01;    // of a second's I/Os: fewer are outliers, unless they took kAloneSeconds
  static constexpr double kStoodStill = 0.5;   // of the slowest one's time: as much work is missing
  static constexpr double kMoreLoad = 1.25;    // may make I/Os somewhat slower
  static constexpr double kMuchMoreLoad = 2.5;  // the same, in a spike
  static constexpr double kTimesUsual = 2;
  // A time constant: what is usual is not what single bad seconds are; that the load is not more keeps the morning
  // silent.
  static constexpr double kUsualFallSeconds = 60;
  static constexpr double kBroadSeconds = 5;  // for so long, and two windows

  [[nodiscard]] std::optional<Evidence> look(const SignalWindow& now, double limit, double floor_seconds);

  void learn(const SignalWindow& healthy);
  void open();
  void learn_changed(const SignalWindow& slow);
  void accept();

 private:
  struct Usual {
    Baseline mean{kUsualFallSeconds};
    Baseline median{kUsualFallSeconds};
    void learn(const SignalWindow& now);
  };
  [[nodiscard]] std::optional<Evidence> look_for_long(const SignalWindow& now, double limit) const;
  [[nodiscard]] bool stood_still(const SignalWindow& now, double slowest) const;
  [[nodiscard]] std::optional<Evidence> look_for_broad(const SignalWindow& now, double floor_seconds);

  Usual usual_;
  Usual changed_;
  std::optional<Evidence> run_;  // all are somewhat slower, but not for long enough
  double last_seconds_ = 0;      // of the window before, and its I/Os
  double last_ios_ = 0;
};

}  // namespace ssdpulse::analysis
