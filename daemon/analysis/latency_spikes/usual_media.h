// SPDX-License-Identifier: Apache-2.0
// How much does a drive write to its media when nothing is wrong?
//
// ratio x host bytes + background x time: what the host's writes cost, and what the drive writes by itself. Both are
// learned from healthy intervals between two readings of its counters, and robustly: an interval that is not like the
// others moves neither. How much the two have apart is known only where the host wrote more at one time than at
// another. Where it did not, everything beyond the host's own bytes counts as background: what is expected of an
// interval in which the host writes less is then never too little.
#pragma once

#include <deque>
#include <vector>

namespace ssdpulse::analysis {

class UsualMedia {
 public:
  static constexpr std::size_t kMost = 64;        // intervals that count: half an hour of readings, or more
  static constexpr double kLeastBytes = 1 << 20;  // in an interval; with fewer it is added to the next,
  static constexpr double kLeastDoubts = 8;       // as with less than so much more than the counters' units hide
  static constexpr double kDifferentLoad = 0.05;  // of the host's rates: two intervals that say what a byte costs
  static constexpr double kLowerQuartile = 0.25;  // of what they say: where that scatters, the background is more

  /// A healthy interval; `doubt_bytes`: by how much its differences may be off.
  void learn(double host_bytes, double media_bytes, double seconds, double doubt_bytes);
  /// Of the drive's whole life: holds as long as there is no interval.
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
