// SPDX-License-Identifier: Apache-2.0
// What a signal of slowness looks at, and what it answers.
//
// Each signal (tail, excess, outlier, stall) looks at the windows of one operation, one after the other, and decides
// whether each is evidence that something was slow. What it has learned from healthy windows is its own.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/analysis/latency_spikes/io_window.h"

namespace ssdpulse::analysis {

/// What else happens meanwhile.
struct Surroundings {
  double load = 0;             // to the usual one, of I/Os, bytes or their size, whichever is most; 0: not known
  double usual_rate = 0;       // I/Os of the operation in a second; 0: not known
  bool others_long = false;    // I/Os of another operation ended that took kLongSeconds
  bool unseen_lately = false;  // completions were missed, of an operation whose I/Os the kernel does not count
  std::optional<std::int64_t> kernel_in_flight = {};  // see model::KernelInFlight; no less than of this operation
};

struct SignalWindow {
  SteadyTime begin;
  SteadyTime end;
  const OperationWindow& io;
  const LatencyWords& pooled;  // of this window, and of those before it that it takes for enough I/Os
  bool enough = false;         // there are
  bool in_spike = false;       // that lasts
  Surroundings around;

  [[nodiscard]] double seconds() const { return seconds_between(begin, end); }
};

/// How a spike that was opened by some evidence continues and ends.
enum class EvidenceKind : std::uint8_t {
  clear,  // tail, stall, or a second whose waiting was that of a few long I/Os
  broad,  // all are somewhat slower
  rare    // one in hundreds is slow by far
};

struct Evidence {
  SteadyTime begin;
  SteadyTime end;
  EvidenceKind kind = EvidenceKind::clear;
  bool alone = false;     // no second window is needed
  double limit = 0;       // seconds: what is beyond it is slow
  std::uint64_t ios = 0;  // that are
  double tail = 0;
  double slowest = 0;
  double share = 0;                      // of the I/Os that completed
  std::optional<SteadyTime> since = {};  // where the signal itself knows when it began to be slow
};

inline constexpr double kTail = 0.99;
inline constexpr std::uint64_t kLeastIos = 10;  // in a pool
inline constexpr double kLongSeconds = 0.5;
inline constexpr double kAloneSeconds = 1;  // so slow, one window is enough

/// The I/Os of the window that are beyond the limit.
Evidence evidence_beyond(const SignalWindow& now, double limit);

}  // namespace ssdpulse::analysis
