// SPDX-License-Identifier: Apache-2.0
// WriteDetails: what is measured only for writes: their hint and stream, what made them, how they fit the drive;
// cumulative; part of DeviceIo. WriteHintPath: where a write's lifetime hint ends on this host. Values only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "daemon/base/complete.h"
#include "daemon/model/block_io.h"

namespace ssdpulse::model {

/// The lifetime that the writer declared (fcntl F_SET_RW_HINT). `not_set`: it declared none; `unknown`: this kernel
/// does not let us see whether it did.
enum class WriteHint : std::uint8_t { not_set, none, short_lived, medium, long_lived, extreme, unknown };
inline constexpr std::size_t kWriteHints = util::count_of<WriteHint>();
inline constexpr auto kWriteHintNames =
    util::names<WriteHint>({"not_set", "none", "short", "medium", "long", "extreme", "unknown"});

/// What made a write. `writeback`: the page cache, `direct`: straight from a process; `other`: unknown.
enum class WriteClass : std::uint8_t { journal, metadata, writeback, direct, swap, other };
inline constexpr std::size_t kWriteClasses = util::count_of<WriteClass>();
inline constexpr auto kWriteClassNames =
    util::names<WriteClass>({"journal", "metadata", "writeback", "direct", "swap", "other"});

struct WriteDetails {
  std::array<std::uint64_t, kWriteHints> hint_bytes{};
  std::array<std::uint64_t, kWriteHints> hint_ios{};
  std::array<LatencyHistogram, kWriteHints> hint_latency;  // device time
  std::array<std::uint64_t, kWriteClasses> class_bytes{};
  std::map<std::uint8_t, std::uint64_t> stream_bytes;  // by stream, only used ones; 0 is no stream
  std::uint64_t misaligned_bytes = 0;  // in writes that begin or end inside a preferred unit of the drive
  std::uint64_t small_bytes = 0;       // in writes smaller than one
};

/// Writes should begin at a multiple of `alignment` and end at a multiple of `granularity`; in bytes, not 0.
struct WritePreference {
  std::uint32_t alignment = 0;
  std::uint32_t granularity = 0;
  bool operator==(const WritePreference&) const = default;
};

/// How far the kernel carries the lifetime hint of a write.
enum class HintReach : std::uint8_t {
  dropped,                     // bios carry none
  file_system_drops_buffered,  // bios carry hints, but ext4 does not pass on those of the page cache
  block_layer,                 // and no further
  drive,                       // to the drive as a stream or placement handle, if written to the device itself
};
inline constexpr auto kHintReachNames =
    util::names<HintReach>({"dropped", "file_system_drops_buffered", "block_layer", "drive"});
inline constexpr auto kHintReachWords = util::names<HintReach>(
    {"the kernel drops them", "reach the block layer, but ext4 drops those of buffered writes", "reach the block layer",
     "reach the drive as a stream when the device itself is written directly"});

/// What the drive could do with the hint.
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
