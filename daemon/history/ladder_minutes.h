// SPDX-License-Identifier: Apache-2.0
// LadderMinutes: the stage that keeps what was written on each rung of the write ladder: a row per minute for each rung
// and class that got anything, stored as if it were a device, so that minutes become hours and are forgotten as those
// of devices are. A lane is what such rows belong to: the identity under which they are stored.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/history_rows.h"
#include "daemon/model/stage.h"
#include "daemon/model/write_ladder.h"

namespace ssdpulse::history {

/// "rung/file_system/journal", "rung/drive", "rung/volume/md0", "rung/members/mapper/vg-data",
/// "rung/gap/media/no_counter". A device never has such an identity: the kernel's names have no slash, and what drives
/// choose is followed by " | ".
inline constexpr std::string_view kLadderLane = "rung/";
inline bool is_ladder_lane(std::string_view identity) {
  return identity.starts_with(kLadderLane) && std::all_of(identity.begin(), identity.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("/_-.:!+").find(c) != std::string_view::npos;
         });
}

/// What was written between two readings, the first at `before_at`; what a drive received only if it also counts what
/// it wrote to its media.
std::vector<model::DeviceMinute> ladder_rows(const model::WriteLadder& before, model::WallTime before_at,
                                             const model::WriteLadder& now, std::uint64_t measured_ms);

/// Adds what is stored in a lane. One that no version of ours wrote adds nothing.
void add(model::PastLadder& ladder, std::string_view lane, const model::DeviceInterval& load);

class LadderMinutes final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  std::optional<model::Minute> minute_;
  std::optional<model::WriteLadder> last_;
  model::SteadyTime last_at_;
  model::WallTime last_wall_;
};

}  // namespace ssdpulse::history
