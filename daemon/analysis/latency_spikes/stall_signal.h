// SPDX-License-Identifier: Apache-2.0
// StallSignal: whether something is in flight all through a window in which nothing completes.
//
// In our count, a missed completion leaves its I/O in flight forever, so that every pause in the load would look like a
// stall. So the kernel's own count is read: a stall is plausible while the kernel has I/Os in flight, and I/Os that are
// missing from its count at two readings have leaked. No leak is assumed before the second reading. Where the kernel
// does not count (flushes, and everything where iostats is 0), I/Os in flight all through a stall have leaked if the
// stall lasts for kStallSeconds, or if the first I/Os that complete after it are all fast. They have not leaked after
// all once fewer are in flight, or once an I/O completes that was in flight then.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/analysis/latency_spikes/signal.h"

namespace ssdpulse::analysis {

class StallSignal {
 public:
  static constexpr double kLongestSeconds = 60;  // longer latencies share a word with these
  static constexpr double kStallSeconds = 180;   // an I/O in flight for longer was missed by us, not by the device

  [[nodiscard]] std::optional<Evidence> evaluate(const SignalWindow& now, double limit);
  /// The previous window was part of a stall, plausible or not.
  [[nodiscard]] bool just_over() const { return just_over_; }

 private:
  void find_again(const SignalWindow& now, double slowest);
  void end(const SignalWindow& now, double slowest);
  [[nodiscard]] bool plausible(const SignalWindow& now);

  std::optional<SteadyTime> since_;
  bool just_over_ = false;
  bool confirmed_ = false;              // the kernel had I/Os in flight
  std::optional<std::int64_t> denied_;  // how many the kernel did not have in flight when last asked
  std::int64_t stalled_ = 0;            // in flight all through the stall
  std::int64_t leaked_ = 0;             // in flight forever
  SteadyTime leaked_since_;             // when the stall that showed it began
};

}  // namespace ssdpulse::analysis
