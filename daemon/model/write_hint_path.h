// SPDX-License-Identifier: Apache-2.0
// Where a write's lifetime hint ends on this host. Values only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "daemon/util/complete.h"

namespace ssdpulse::model {

/// How far the kernel carries it.
enum class HintReach : std::uint8_t {
  dropped,                     // bios carry none
  file_system_drops_buffered,  // bios carry hints, but ext4 does not pass on those of the page cache
  block_layer,                 // and no farther
  drive,                       // to the drive as a stream or placement handle, if written to the device itself
};
inline constexpr auto kHintReachNames =
    util::names<HintReach>({"dropped", "file_system_drops_buffered", "block_layer", "drive"});
inline constexpr auto kHintReachWords = util::names<HintReach>(
    {"the kernel drops them", "reach the block layer, but ext4 drops those of buffered writes", "reach the block layer",
     "reach the drive as a stream when the device itself is written directly"});

/// What the drive could do with it.
enum class DriveSeparation : std::uint8_t {
  none,
  directives,  // it has the commands that name streams, but nothing read here shows whether it has streams
  fdp,
  unknown,
};
inline constexpr auto kDriveSeparationNames = util::names<DriveSeparation>({"none", "directives", "fdp", "unknown"});
inline constexpr auto kDriveSeparationWords = util::names<DriveSeparation>(
    {"has neither streams nor FDP", "has directives, and may have streams", "has FDP", "unknown"});

struct WriteHintPath {
  HintReach kernel = HintReach::dropped;
  DriveSeparation drive = DriveSeparation::unknown;
  bool operator==(const WriteHintPath&) const = default;
};

}  // namespace ssdpulse::model
