// SPDX-License-Identifier: Apache-2.0
// What does the history know about the disks that are judged?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/audit/device_past.h"
#include "daemon/history/reader.h"
#include "daemon/util/result.h"

namespace ssdpulse::gathering {

/// How far back evidence goes: far enough to include what happens once a week.
inline constexpr std::chrono::hours kReach{7 * 24};

/// By the disk's name. Disks that the history does not know, or whose name was another disk's, are left out. Takes
/// about a tenth of a second for a busy disk; an error is that of the first question that got no answer.
util::Result<std::map<std::string, audit::DevicePast>> read_pasts(history::Reader& history,
                                                                  const std::vector<std::string>& disks,
                                                                  model::WallTime now, double time_scale = 1);

}  // namespace ssdpulse::gathering
