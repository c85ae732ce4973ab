// SPDX-License-Identifier: Apache-2.0
// WriteLadder: how much was written on each rung of the way from whoever writes to the media, so that the ratio of two
// rungs says where writes are amplified. ladder_of(): from one snapshot; what cannot be known is a gap. Values only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::model {

/// No byte is counted twice on a rung, so each adds up over the host.
enum class Rung : std::uint8_t {
  application,  // what processes write: into the page cache, past it, and what of their memory is swapped out
  file_system,  // what file systems, swap and raw writers send: to volumes that carry no other, and to drives
  drive,        // what the block layer sends to the drives: with all that volumes add
  reported,     // what the drives say they received
  media,        // what the drives say they wrote to their media
};
inline constexpr auto kRungNames = util::names<Rung>({"application", "file_system", "drive", "reported", "media"});

/// Those of WriteClass, and what becomes dirty in the page cache.
enum class RungClass : std::uint8_t { journal, metadata, writeback, direct, swap, other, page_cache };
inline constexpr auto kRungClassNames =
    util::names<RungClass>({"journal", "metadata", "writeback", "direct", "swap", "other", "page_cache"});
static_assert(std::equal(kWriteClassNames.begin(), kWriteClassNames.end(), kRungClassNames.begin()));

/// Cumulative.
struct RungBytes {
  Rung rung = Rung::drive;
  std::string device;                        // a drive or a volume; of reported and media, see ladder_of()
  std::optional<RungClass> rung_class = {};  // of applications and file systems: `other` cannot be determined
  double bytes = 0;
  std::optional<WallTime> since = {};
  std::optional<std::size_t> group = 0;  // index of WriteLadder::groups; absent: of the host
};

enum class RungGapReason : std::uint8_t {
  volume_not_measured,  // its bios are not counted
  carries_both,         // a file system and another volume lie on the volume, and their writes cannot be told apart
  unknown_sender,       // volumes lie on the drive, and not all writes show whether one of them sent them
  drive_not_measured,   // a volume lies on it
  no_counter,           // it reports no writes to its media
  direct_unknown,       // how much of what it got was written past the page cache is not known
  not_counted,          // the kernel does not say how much became dirty
};
inline constexpr auto kRungGapReasonNames =
    util::names<RungGapReason>({"volume_not_measured", "carries_both", "unknown_sender", "drive_not_measured",
                                "no_counter", "direct_unknown", "not_counted"});

/// The rung lacks what this device has: a ratio with it would be wrong.
struct RungGap {
  Rung rung = Rung::drive;
  std::string device;
  RungGapReason reason = RungGapReason::no_counter;
  std::optional<std::size_t> group = 0;  // likewise
};

/// Drives that share volumes, directly or through one another, and these volumes: only together can they be compared.
struct LadderGroup {
  std::vector<std::string> volumes;  // from the top of the stack down, as bytes pass them; of one floor, sorted
  std::vector<std::string> drives;   // sorted
};

/// What a volume was sent and what reached its members, whoever asked for it: parity, copies, a resync. Cumulative.
struct PassedOn {
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  /// Absent: another volume shares a member, or bios of one are not seen (a layer that remaps them without accounting).
  std::optional<std::uint64_t> members_read_bytes = {};
  std::optional<std::uint64_t> members_written_bytes = {};
  std::optional<WallTime> since = {};  // when the last of these began to count: then it is another volume, or again
};

struct WriteLadder {
  std::vector<RungBytes> rungs;  // each class and device from the first, also at 0
  std::vector<RungGap> gaps;
  std::vector<LadderGroup> groups;
  std::map<std::string, PassedOn> passed_on;  // by volume, of those whose bios are counted
};

/// What was written on each rung in a window of the past.
struct PastLadder {
  struct Volume {
    double written_bytes = 0;
    double read_bytes = 0;
    double members_written_bytes = 0;
    double members_read_bytes = 0;
  };
  double hours = 0;                                                        // of the window, in which it was kept
  std::map<std::pair<Rung, std::optional<RungClass>>, double> bytes = {};  // of `reported`, of drives that count media
  std::map<std::string, Volume> volumes = {};  // whose members' bytes are known; dm's as "mapper/NAME"
  std::map<std::pair<Rung, RungGapReason>, double> gap_hours = {};  // in which the rung lacked something
};

/// Paths of dm-multipath are left out: their head is the drive. What an NVMe drive reports is of its controller, as it
/// has one counter for all namespaces.
WriteLadder ladder_of(const Snapshot& snapshot);

}  // namespace ssdpulse::model
