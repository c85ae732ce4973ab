// SPDX-License-Identifier: Apache-2.0
// Which of a drive's counters tell its write amplification?
// The best page by precedence that counts media writes, and the host counter that goes with it. A page whose counters
// contradict SMART is no source. Whatever was better and could not be taken is named. Pure.
#pragma once

#include <optional>
#include <string>

#include "daemon/model/nvme.h"
#include "daemon/sources/nvme/drive_poller.h"

namespace ssdpulse::nvme {

struct SourceChoice {
  std::string source;                             // empty: none
  std::string reason;                             // why nothing better, or why nothing at all
  std::optional<model::ByteCounter> host_before;  // the host counter read before the media counter,
  std::optional<model::ByteCounter> host_after;   // and behind it; the same where both stand on one page
  std::optional<model::ByteCounter> media;
  std::optional<model::ByteCounter> endurance_estimate;
  bool since_birth = true;  // both counters count from the drive's first day on
};

/// What an earlier choice of this drive found the counters of a source to count in, where that is not stated: it stays,
/// because the counters that it was settled by drift apart with time.
struct SettledUnit {
  std::string source;
  std::uint64_t bytes = 0;  // 0: nothing yet
};

/// Of a reading that asked for media pages.
SourceChoice choose_source(const DriveReading& reading, const SettledUnit& settled = {});

}  // namespace ssdpulse::nvme
