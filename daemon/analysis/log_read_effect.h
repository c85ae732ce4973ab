// SPDX-License-Identifier: Apache-2.0
// LogReadEffect: do the drive's reads and writes suffer while its log pages are read? Compares the 99th percentile of
// the I/Os that ended near such a read with that of all others. Pure: the caller says which I/Os were near.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/model/latency_words.h"

namespace ssdpulse::analysis {

using model::LatencyWords;

class LogReadEffect {
 public:
  /// Beyond so many near ones, half of all is forgotten: what the drive did last week says little of today.
  static constexpr std::uint64_t kMostIos = 1'000'000;
  /// Below so many I/Os near log reads there is no result: their 99th percentile would be a handful of them.
  static constexpr std::uint64_t kLeastIos = 2000;

  void add_near(const LatencyWords& ios);
  /// All I/Os, the near ones included, of the whole time.
  void add_all(const LatencyWords& ios);

  /// p99 near, over p99 of the others; by the upper bounds of the buckets (9 % apart). Absent until both have enough.
  [[nodiscard]] std::optional<double> ratio() const;

 private:
  void fade();

  LatencyWords near_;
  LatencyWords all_;
};

}  // namespace ssdpulse::analysis
