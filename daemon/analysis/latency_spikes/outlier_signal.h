// SPDX-License-Identifier: Apache-2.0
// OutlierSignal: whether a few I/Os, too few for the 99th percentile, account for much of the waiting time. Looks at
// the last minute: single slow I/Os are normal, and on a healthy drive account for a few hundredths of it. Where they
// account for less because all others wait, too, they count if they are long, and far more than is usual in number.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "daemon/analysis/latency_spikes/signal.h"

namespace ssdpulse::analysis {

class OutlierSignal {
 public:
  static constexpr double kPoolSeconds = 60;
  static constexpr std::uint64_t kMinOutliers = 3;
  static constexpr std::uint64_t kMinAllIos = 300;   // I/Os; out of fewer, three are not rare
  static constexpr double kMinShare = 0.15;          // of the waiting time
  static constexpr double kTimesUsual = 2;           // a share that has become normal must double
  static constexpr double kMinLongShare = 0.001;     // of the I/Os: the 99.9th percentile is long
  static constexpr double kTimesUsualLong = 8;       // as many long ones as usual
  static constexpr double kUsualLongSeconds = 1200;  // time constant

  [[nodiscard]] std::optional<Evidence> evaluate(const SignalWindow& now, double limit);

  /// Call when a spike opens: what was slow is part of it.
  void open();
  void accept();

 private:
  struct Part {
    SteadyTime begin;
    SteadyTime end;
    std::uint64_t ios = 0;
    std::uint64_t outliers = 0;
    std::uint64_t long_ones = 0;  // of these, beyond kLongSeconds
    double waited = 0;
    double outliers_waited = 0;
  };
  [[nodiscard]] Part sum_up(SteadyTime end);
  [[nodiscard]] bool too_many_long(const Part& all) const;
  void learn(const Part& left);

  std::deque<Part> parts_;
  double last_share_ = 0;
  double usual_share_ = 0;
  double usual_ios_ = 0;  // before the last minute
  double usual_long_ = 0;
};

}  // namespace ssdpulse::analysis
