// SPDX-License-Identifier: Apache-2.0
// RecentLosses: how much of a device's I/O was not measured recently. The counters only show the total since the start.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/model/operation.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::analysis {

/// Losses of I/Os whose start or end was not seen.
inline constexpr std::array kLostIos{model::Loss::completion_missed, model::Loss::stray, model::Loss::slot_collision};

/// What happened between two moments.
struct LostShare {
  std::array<std::uint64_t, kLostIos.size()> lost{};
  std::uint64_t ios = 0;  // that ended, including the lost ones
  std::chrono::duration<double> duration{};
};

/// For one device: a different device that takes over its name gets its own object.
class RecentLosses {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Call once per tick. Returns the account of a minute when it is over, if more than one I/O in a thousand was lost
  /// (the threshold of the SsdpulseLosingEvents alert) and it was at least a handful.
  std::optional<LostShare> observe(const model::DeviceIo& io, Time at);

 private:
  std::optional<Time> begin_;
  LostShare at_begin_;
};

}  // namespace ssdpulse::analysis
