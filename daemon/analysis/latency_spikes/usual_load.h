// SPDX-License-Identifier: Apache-2.0
// UsualLoad: what a device does when nothing is wrong: how much of each kind, and at what depth. Averages over the last
// minutes of windows with I/O in which nothing was slow; the caller makes sure of that.
#pragma once

#include <array>

#include "daemon/analysis/latency_spikes/io_window.h"

namespace ssdpulse::analysis {

/// Of discards, or flushes.
struct UsualInterference {
  double per_second = 0;
  double depth = 0;  // mean number at the device
};

/// Of one operation.
struct UsualOperation {
  double depth = 0;             // mean number at the device
  double queue_full_share = 0;  // of the time
  double ios_per_second = 0;
  double bytes_per_second = 0;
};

class UsualLoad {
 public:
  static constexpr double kSeconds = 120;  // time constant

  void learn(const IoWindow& window);

  [[nodiscard]] const UsualOperation& operation(model::Operation which) const { return operations_[which]; }
  [[nodiscard]] double ios_per_second() const { return ios_; }
  [[nodiscard]] double bytes_per_second() const { return bytes_; }
  [[nodiscard]] const UsualInterference& discards() const { return discards_; }
  [[nodiscard]] const UsualInterference& flushes() const { return flushes_; }

 private:
  double weight_ = 0;
  model::ByOperation<UsualOperation, model::kSpikeOperations> operations_;
  double ios_ = 0;
  double bytes_ = 0;
  UsualInterference discards_;
  UsualInterference flushes_;
};

}  // namespace ssdpulse::analysis
