// SPDX-License-Identifier: Apache-2.0
// Do the drive's reads and writes suffer while we read its logs?
// Compares the 99th percentile of the I/Os that ended near a log read with that of all the others. Pure: the caller
// says which I/Os were near.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/model/snapshot.h"

namespace ssdpulse::analysis {

/// Samples of device time by latency word (bpf/abi/latency_buckets.h), reads and writes together.
using LatencyWords = std::vector<std::uint64_t>;

/// Of all reads and writes of a device, whatever else was in flight.
LatencyWords read_and_write_words(const model::DeviceIo& io);

/// What was added between two cumulative counts; nothing if the later one is smaller somewhere (a device began anew).
std::optional<LatencyWords> added(const LatencyWords& before, const LatencyWords& after);

class LogReadEffect {
 public:
  /// Below so many I/Os near log reads nothing is said: their 99th percentile would be a handful of them.
  static constexpr std::uint64_t kLeastIos = 2000;

  void add_near(const LatencyWords& ios);
  /// All I/Os, the near ones included, of the whole time.
  void add_all(const LatencyWords& ios);

  /// p99 near, over p99 of the others; by the upper bounds of the buckets (9 % apart). Absent until both have enough.
  [[nodiscard]] std::optional<double> ratio() const;

  /// Older half forgotten: what the drive did last week says little of today.
  void fade();

 private:
  LatencyWords near_;
  LatencyWords all_;
};

}  // namespace ssdpulse::analysis
