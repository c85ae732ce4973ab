// SPDX-License-Identifier: Apache-2.0
// UsualWait: how long I/Os of one operation usually wait, and how much longer these did.
//
// Usual is the mean total latency of those within the spike limit, over about the last two minutes of windows outside
// spikes. In a spike, every I/O counts with what it waited beyond that, and waiting less counts against it. Outside,
// and in a spike of rare outliers, only I/Os beyond the limit count: what the others wait is usual.
#pragma once

#include <optional>

#include "daemon/analysis/latency_spikes/io_window.h"

namespace ssdpulse::analysis {

class UsualWait {
 public:
  static constexpr double kSeconds = 120;  // time constant

  /// A window outside spikes; `limit`: beyond it an I/O is slow.
  void learn(const OperationWindow& window, double seconds, double limit);

  /// Seconds for an I/O. Nothing while none was seen.
  [[nodiscard]] std::optional<double> seconds() const;

 private:
  double ios_ = 0;
  double waited_ = 0;
};

}  // namespace ssdpulse::analysis
