// SPDX-License-Identifier: Apache-2.0
// RecentLosses: how much of a device's I/O was not measured lately. The counters only say how much ever was not.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/model/operation.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::analysis {

/// I/Os of which not both ends were seen.
inline constexpr std::array kLostIos{model::Loss::completion_missed, model::Loss::stray, model::Loss::slot_collision};

/// What happened from one moment to another.
struct LostShare {
  std::array<std::uint64_t, kLostIos.size()> lost{};
  std::uint64_t ios = 0;  // that ended, the lost ones too
  std::chrono::duration<double> duration{};
};

/// Of one device: another one that takes its name has an object of its own.
class RecentLosses {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Once each tick. The account of a minute when it is over, if more than one I/O in a thousand was lost (what
  /// SsdpulseLosingEvents alerts at) and it was more than a handful.
  std::optional<LostShare> observe(const model::DeviceIo& io, Time at);

 private:
  std::optional<Time> begin_;
  LostShare at_begin_;
};

}  // namespace ssdpulse::analysis
