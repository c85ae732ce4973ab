// SPDX-License-Identifier: Apache-2.0
// CounterLag: how old a counter's value can be when it is read.
// Some drives update a counter only now and then. The readings alone show this much:
// - If the counter was seen to change twice, its period is shorter than the time around both changes.
// - If it did not move while certainly more was written than its granules (and the drive's write buffer) can hide, it
//   was stale for at least that long.
// Covered: a counter with a fixed period between 3 poll intervals and an hour, from the first reading on (an hour is
// assumed until two changes have been seen); and one with a varying period, once its longest stale stretch has been
// seen. Not detected: a period below 3 poll intervals (the value is then older than it seems by less than that); a
// varying period before its longest stretch; a stale host counter if the block layer is not measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/analysis/write_amplification/counter_interval.h"

namespace ssdpulse::analysis {

/// What else is known about writes at a reading: bytes since some fixed time, at least and at most. What is not
/// measured is unbounded, and so proves nothing.
struct WriteEvidence {
  Interval host{0, kUnbounded};   // according to the drive's own host counter
  Interval block{0, kUnbounded};  // according to the block layer
};

class CounterLag {
 public:
  using Time = std::chrono::nanoseconds;

  /// A reading of the counter. `hidden`: how much can be written unnoticed.
  void observe(Time at, Uint128 count, const WriteEvidence& evidence, Uint128 hidden);

  /// The value read at t is that of some time in [t - lag, t]. 0 for a counter that follows every poll.
  [[nodiscard]] Time lag(Time poll_interval) const;

  /// At least the time between two updates of its value, so far as two changes have shown it; else an hour.
  [[nodiscard]] Time period() const { return shortest_period_; }

  /// How long it has been standing still although it should have moved.
  [[nodiscard]] Time stale_for() const { return last_ ? last_->stale_for : Time{0}; }

  /// It has stood still for longer than the shortest time around two changes, or was never seen to change twice.
  [[nodiscard]] bool stuck() const {
    return stale_for() > (shortest_period_ == kLongestPeriod ? Time{0} : shortest_period_);
  }

  /// Time has gone backwards: what was learned is kept.
  void forget_times() { last_.reset(), before_change_.reset(); }

  template <typename Self, typename Archive>
  static void archive(Self& self, Archive& fields) {
    fields(self.shortest_period_, self.longest_stale_);
  }

 private:
  static constexpr Time kLongestPeriod = std::chrono::hours(1);

  struct Reading {
    Time at;
    Uint128 count;
    Time unmoved_since;  // since when it may be standing still
    WriteEvidence then;  // and what was known about writes at that time
    Time stale_for{0};
  };

  std::optional<Reading> last_;
  std::optional<Time> before_change_;  // the reading before the last change
  Time shortest_period_ = kLongestPeriod;
  Time longest_stale_{0};
};

/// Whether a drive refreshes both counters at the same time, as most do that refresh them only now and then: each value
/// of one then belongs to one of the other, however old both are. Judged by successive moves; not kept across restarts.
class CommonRefresh {
 public:
  void observe(bool host_moved, bool media_moved) {
    moves_ = host_moved != media_moved ? 0 : moves_ + (host_moved ? 1 : 0);
  }
  [[nodiscard]] bool likely() const { return moves_ >= kMinMoves; }

  /// Between two polls, the two refreshes may still be apart. Had they been by more than this share of the polls'
  /// distance, one poll of so many would probably have fallen between them (the rule of three).
  [[nodiscard]] double share_apart() const { return 3.0 / (3.0 + static_cast<double>(moves_)); }

 private:
  static constexpr unsigned kMinMoves = 4;
  std::uint64_t moves_ = 0;  // of both since one last moved alone
};

}  // namespace ssdpulse::analysis
