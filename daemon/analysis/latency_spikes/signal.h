// SPDX-License-Identifier: Apache-2.0
// What a signal of slowness looks at, and what it returns.
//
// Each signal (tail, excess, outlier, stall) looks at the windows of one operation in turn, and decides for each
// whether it is evidence that something was slow. Each signal learns from healthy windows separately.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/analysis/latency_spikes/io_window.h"

namespace ssdpulse::analysis {

/// What else is happening on the device.
struct Surroundings {
  // Relative to the usual: I/Os, bytes or I/O size, whichever is highest; 0: unknown.
  double load = 0;              // of the operation, of reads and of writes, whoever sends them
  double own_load = 0;          // the same without what others bring, as far as is known who sends what
  double senders_just_now = 0;  // what those who usually send the operation sent in the last two windows
  double operation_load = 0;    // of the operation alone
  // Of reads and writes:
  double ios_per_second = 0;
  double bytes_per_second = 0;
  double usual_rate = 0;         // I/Os of the operation per second; 0: unknown
  bool others_long = false;      // I/Os of another operation ended after kLongSeconds or more
  bool others_in_spike = false;  // another operation has a spike of more than outliers
  bool unseen_lately = false;    // completions were missed, for an operation that the kernel does not count
  std::optional<std::int64_t> kernel_in_flight = {};  // see model::KernelInFlight; at least those of this operation
};

struct SignalWindow {
  SteadyTime begin;
  SteadyTime end;
  const OperationInterval& io;
  const SparseBuckets& pooled;  // of this window, and of as many before it as it takes to have enough I/Os
  bool enough = false;          // `pooled` has enough I/Os
  bool in_spike = false;        // a spike is open
  Surroundings around;

  [[nodiscard]] double seconds() const { return seconds_between(begin, end); }
};

/// What kind of evidence opened a spike: it decides how the spike continues and ends.
enum class EvidenceKind : std::uint8_t {
  clear,  // tail, stall, or a second whose waiting was due to a few long I/Os
  broad,  // all I/Os are somewhat slower
  rare    // one I/O in hundreds is far slower
};

struct Evidence {
  SteadyTime begin;
  SteadyTime end;
  EvidenceKind kind = EvidenceKind::clear;
  bool alone = false;     // no second window is needed
  double limit = 0;       // seconds; an I/O beyond it is slow
  std::uint64_t ios = 0;  // beyond the limit
  double tail = 0;
  double slowest = 0;
  double share = 0;                      // of the I/Os that completed
  std::optional<SteadyTime> since = {};  // set if the signal itself knows when the slowness began
};

inline constexpr double kTail = 0.99;
inline constexpr std::uint64_t kMinIos = 10;  // needed in a pool
inline constexpr double kLongSeconds = 0.5;
inline constexpr double kAloneSeconds = 1;  // for one window to be enough

/// Evidence from the I/Os of the window that are beyond the limit.
Evidence evidence_beyond(const SignalWindow& now, double limit);

}  // namespace ssdpulse::analysis
