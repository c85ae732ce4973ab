// SPDX-License-Identifier: Apache-2.0
// LogReadEffect: whether the drive's reads and writes suffer while its log pages are read. Compares the 99th percentile
// of the I/Os that ended near such a read with that of all others. Pure: the caller says which I/Os were near.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/model/latency_buckets.h"

namespace ssdpulse::analysis {

using model::LatencyBuckets;

class LogReadEffect {
 public:
  /// Beyond this many near I/Os, half of everything is forgotten: what the drive did last week says little about today.
  static constexpr std::uint64_t kMaxIos = 1'000'000;
  /// Below this many I/Os near log reads there is no result: a handful of them would decide the 99th percentile.
  static constexpr std::uint64_t kMinIos = 2000;

  void add_near(const LatencyBuckets& ios);
  /// All I/Os of the whole time, including the near ones.
  void add_all(const LatencyBuckets& ios);

  /// p99 of the near I/Os over p99 of the others, by bucket upper bounds (9 % apart). Absent until both have enough.
  [[nodiscard]] std::optional<double> ratio() const;

 private:
  void fade();

  LatencyBuckets near_;
  LatencyBuckets all_;
};

}  // namespace ssdpulse::analysis
