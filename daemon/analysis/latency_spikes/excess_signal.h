// SPDX-License-Identifier: Apache-2.0
// ExcessSignal: whether more time was spent waiting than usual.
//
// Either long I/Os account for most of a second's waiting, as after a freeze: there are many of them, or the work of
// that time is missing. Or all I/Os are somewhat slower for a while: median and mean are both kTimesUsual times their
// usual value, without more load or larger I/Os. If others bring more load, then kTimesWithOthers; or, where those
// who usually send the operation also get less done, kTimesUsual again, for a shorter time. (A few I/Os move a mean; a
// different mix of sizes moves a median.)
#pragma once

#include <optional>

#include "daemon/analysis/latency_spikes/baseline.h"
#include "daemon/analysis/latency_spikes/signal.h"

namespace ssdpulse::analysis {

class ExcessSignal {
 public:
  static constexpr double kMaxWaiting = 0.5;  // of a second's waiting is due to long I/Os
  static constexpr double kFewShare = 0.01;   // of a second's I/Os: fewer are outliers, unless they took kAloneSeconds
  static constexpr double kStoodStill = 0.5;  // of the usual work in the slowest I/O's time is missing
  static constexpr double kMoreLoad = 1.25;   // this much more load may make I/Os somewhat slower
  static constexpr double kMuchMoreLoad = 2.5;  // the same, within a spike
  static constexpr double kTimesUsual = 2;
  static constexpr double kTimesWithOthers = 3;
  // Time constant. It is short, so that a few bad seconds do not stay usual; mornings stay silent because more load is
  // excluded.
  static constexpr double kUsualFallSeconds = 60;
  static constexpr double kBroadSeconds = 5;      // for at least this long, and two windows
  static constexpr double kStarvedShare = 0.7;    // of the usual work: with less, they are held up
  static constexpr double kHardlyAnyShare = 0.3;  // of the usual work: then kTimesStarved is enough
  static constexpr double kStoppedShare = 0.03;   // with less, they may have stopped by themselves
  static constexpr double kTimesStarved = 1.5;
  static constexpr double kStarvedSeconds = 3;

  [[nodiscard]] std::optional<Evidence> evaluate(const SignalWindow& now, double limit, double floor_seconds);

  void learn(const SignalWindow& healthy);
  void forget_held();
  void open();
  void learn_changed(const SignalWindow& slow);
  void accept();

 private:
  struct Usual {
    Baseline mean{kUsualFallSeconds};
    Baseline median{kUsualFallSeconds};
    void learn(const SignalWindow& now);
  };
  [[nodiscard]] std::optional<Evidence> find_long(const SignalWindow& now, double limit) const;
  [[nodiscard]] static bool gets_less_done(const SignalWindow& now);
  [[nodiscard]] bool stood_still(const SignalWindow& now, double slowest) const;
  [[nodiscard]] std::optional<Evidence> find_broad(const SignalWindow& now, double floor_seconds);

  Usual usual_;
  Usual changed_;
  std::optional<Evidence> run_;  // all I/Os are somewhat slower, but not yet for long enough
  double last_seconds_ = 0;      // of the previous window, with its I/Os below
  double last_ios_ = 0;
};

}  // namespace ssdpulse::analysis
