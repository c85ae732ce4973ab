// SPDX-License-Identifier: Apache-2.0
// read_history_evidence(): reads what the history knows about the disks that are judged.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/audit/device_evidence.h"
#include "daemon/history/reader.h"
#include "daemon/util/result.h"

namespace ssdpulse::gathering {

/// How far back evidence goes: far enough to include what happens once a week.
inline constexpr std::chrono::hours kReach{7 * 24};

/// Of discards alone: far enough for a timer that runs once a month.
inline constexpr std::chrono::hours kReachOfDiscards{36 * 24};

/// By the disk's name: the past, up to kReach, of the device that had this name last. Names that the history does not
/// know are left out. Waits for the answers, about a tenth of a second for a busy disk. Error: of the first query that
/// failed. `time_scale`: see EvidenceSums.
util::Result<std::map<std::string, audit::DeviceEvidence>> read_history_evidence(history::Reader& history,
                                                                                 const std::vector<std::string>& disks,
                                                                                 model::WallTime now,
                                                                                 double time_scale = 1);

}  // namespace ssdpulse::gathering
