// SPDX-License-Identifier: Apache-2.0
// UsualWait: how long I/Os of one operation usually wait.
//
// Usual is the mean total latency of the I/Os within the spike limit, over about the last two minutes of windows
// outside spikes. In a spike, every I/O's wait beyond that counts, and a shorter wait counts against it. Outside
// spikes, and in a spike of rare outliers, only I/Os beyond the limit count: the wait of the others is usual.
#pragma once

#include <optional>

#include "daemon/analysis/latency_spikes/io_window.h"

namespace ssdpulse::analysis {

class UsualWait {
 public:
  static constexpr double kSeconds = 120;  // time constant

  /// A window outside spikes; `limit`: beyond it an I/O is slow.
  void learn(const OperationInterval& window, double seconds, double limit);

  /// Seconds per I/O. Absent until one has been seen.
  [[nodiscard]] std::optional<double> seconds() const;

 private:
  double ios_ = 0;
  double waited_ = 0;
};

}  // namespace ssdpulse::analysis
