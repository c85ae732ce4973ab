// SPDX-License-Identifier: Apache-2.0
// read_history_evidence(): reads what the history knows about the disks that are judged.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/advice/device_evidence.h"
#include "daemon/base/result.h"
#include "daemon/history/history_reader.h"

namespace ssdpulse::advice {

/// How far back evidence goes: far enough to include what happens once a week.
inline constexpr std::chrono::hours kReach{7 * 24};

/// Of discards alone: far enough for a timer that runs once a month.
inline constexpr std::chrono::hours kReachOfDiscards{36 * 24};

/// By the disk's name: the past, up to kReach, of the device that had this name last. Names that the history does not
/// know are left out. Waits for the answers, about a tenth of a second for a busy disk. Error: of the first query that
/// failed. `time_scale`: see EvidenceSums.
util::Result<std::map<std::string, DeviceEvidence>> read_history_evidence(history::Reader& history,
                                                                          const std::vector<std::string>& disks,
                                                                          model::WallTime now, double time_scale = 1);

/// Whether the part of the history that was read is still all there is to judge by. It is not once another spike has
/// ended: its waiting would be neither in that part nor in the metric of ongoing spikes. Pure.
class EvidenceRefresh {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit EvidenceRefresh(std::chrono::minutes max_age) : max_age_(max_age) {}

  /// `spikes`: how many have ended since the daemon's start.
  [[nodiscard]] bool is_due(Time now, std::uint64_t spikes) const {
    return !read_at_ || now - *read_at_ >= max_age_ || spikes != spikes_;
  }
  void was_read(Time now, std::uint64_t spikes) {
    read_at_ = now;
    spikes_ = spikes;
  }

 private:
  std::chrono::minutes max_age_;
  std::optional<Time> read_at_;
  std::uint64_t spikes_ = 0;
};

}  // namespace ssdpulse::advice
