// SPDX-License-Identifier: Apache-2.0
// UsualMedia: how much a drive writes to its media when nothing is wrong.
//
// ratio x host bytes + background x time: what the host's writes cost, and what the drive writes by itself. Both are
// learned from healthy intervals between two readings of its counters, robustly: a single odd interval moves neither.
// The two can only be separated if the host wrote more at one time than at another. Otherwise everything beyond the
// host's own bytes counts as background, so that the expectation for an interval with fewer host writes is never too
// low.
#pragma once

#include <deque>
#include <vector>

namespace ssdpulse::analysis {

class UsualMedia {
 public:
  static constexpr std::size_t kMaxIntervals = 64;  // intervals that count: half an hour of readings, or more
  static constexpr double kMinBytes = 1 << 20;      // in an interval; a smaller one is added to the next,
  static constexpr double kMinUncertainties = 8;    // as is one below this multiple of what the counters' units hide
  static constexpr double kDifferentLoad = 0.05;    // between host rates: two such intervals show what a byte costs
  static constexpr double kLowerQuartile = 0.25;    // of these costs: if they scatter, the background is larger

  /// Learns from a healthy interval; `doubt_bytes`: how far off its differences may be.
  void learn(double host_bytes, double media_bytes, double seconds, double doubt_bytes);
  /// Totals of the drive's whole life: used until there is an interval.
  void learn_life(double host_bytes, double media_bytes, double doubt_bytes);

  [[nodiscard]] double ratio() const { return ratio_; }            // at least 1
  [[nodiscard]] double background() const { return background_; }  // bytes per second

 private:
  struct Interval {
    double host = 0;  // bytes, in `begun_`; bytes per second, once it counts
    double media = 0;
    double seconds = 0;
  };
  void estimate();

  Interval begun_;
  std::deque<Interval> intervals_;
  double ratio_ = 1;
  double background_ = 0;
};

}  // namespace ssdpulse::analysis
