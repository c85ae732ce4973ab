// SPDX-License-Identifier: Apache-2.0
// StallSignal: is something in flight all through a window in which nothing completes?
//
// By our count, a missed completion leaves its I/O in flight forever, and each pause of the load would look like a
// stall. So the kernel's own count is read: what it has in flight is believed for as long as it has it, and what it
// twice at rest does not have has leaked. Until it was read twice, nothing is claimed. Where the kernel does not count
// (flushes, and everything where iostats is 0), what is in flight all through a stall has leaked if the stall lasts for
// kStallSeconds, or if the first I/Os that complete after it are all fast. It has not leaked once less is in flight, or
// once an I/O completes that was in flight then.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/analysis/latency_spikes/signal.h"

namespace ssdpulse::analysis {

class StallSignal {
 public:
  static constexpr double kLongestSeconds = 60;  // latencies beyond are in one word with these
  static constexpr double kStallSeconds = 180;   // what is in flight for longer was missed by us, not by the device

  [[nodiscard]] std::optional<Evidence> look(const SignalWindow& now, double limit);
  /// The window before this one was one of a stall, believed or not.
  [[nodiscard]] bool just_over() const { return just_over_; }

 private:
  void find_again(const SignalWindow& now, double slowest);
  void end(const SignalWindow& now, double slowest);
  [[nodiscard]] bool believed(const SignalWindow& now);

  std::optional<SteadyTime> since_;
  bool just_over_ = false;
  bool confirmed_ = false;              // the kernel had it in flight
  std::optional<std::int64_t> denied_;  // so many the kernel did not have in flight, when it was asked last
  std::int64_t stalled_ = 0;            // in flight all through the stall
  std::int64_t leaked_ = 0;             // in flight for ever
  SteadyTime leaked_since_;             // when the stall began that showed it
};

}  // namespace ssdpulse::analysis
