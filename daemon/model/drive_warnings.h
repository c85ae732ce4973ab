// SPDX-License-Identifier: Apache-2.0
// What an NVMe drive warns of in its health page: what each bit of critical_warning means, what to do and how urgent it
// is. The one table behind the audit, the alerts and their runbooks; drive_warnings_test compares them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "daemon/model/finding.h"

namespace ssdpulse::model {

struct DriveCondition {
  Verdict verdict;           // danger: its alert is critical; advise: a warning
  std::string_view meaning;  // after "the drive: "
  std::string_view advice;
  std::string_view risk;  // of following the advice; empty: none
};

struct DriveWarning {
  std::uint8_t bit;        // of byte 0; of an endurance group too if `of_groups`
  std::string_view label;  // `warning` of ssdpulse_nvme_critical_warning
  bool of_groups;
  DriveCondition condition;
};

inline constexpr std::string_view kRiskOfReplacing = "copying reads all of it; have a backup first";

/// NVM Express Base 2.x, SMART / Health Information. Bits 6 and 7 are not assigned by the version that drives
/// implement.
inline constexpr auto kDriveWarnings = std::to_array<DriveWarning>({
    {0,
     "available_spare",
     true,
     {Verdict::danger, "its spare blocks are below its own threshold: it may become read-only", "replace it soon",
      kRiskOfReplacing}},
    {1,
     "temperature",
     false,
     {Verdict::advise, "its temperature is outside its limits: it slows down, and may shut down",
      "improve its cooling: fans, filters, inlet temperature, its slot, a heat sink", "noise and power"}},
    {2,
     "reliability",
     true,
     {Verdict::danger, "media or internal errors have made it unreliable",
      "check that there are other copies of the data, then replace it", kRiskOfReplacing}},
    {3,
     "read_only",
     true,
     {Verdict::danger, "it accepts no more writes", "check that there are other copies of the data, then replace it",
      kRiskOfReplacing}},
    {4,
     "volatile_backup",
     false,
     {Verdict::danger, "its power-loss protection has failed: a power failure can lose acknowledged writes",
      "disable its volatile write cache, or replace it", kRiskOfReplacing}},
    {5,
     "persistent_memory",
     false,
     {Verdict::danger, "its persistent memory region has become read-only or unreliable",
      "keep nothing in that region that has no other copy, then replace it", kRiskOfReplacing}},
});

/// Its own estimate is 100 % or more. Alone, with spare blocks left, that is age and no failure.
inline constexpr DriveCondition kLifeUsedUp{Verdict::advise, "its rated life is used up: it works on, without warranty",
                                            "plan its replacement, and keep nothing on it that has no other copy",
                                            kRiskOfReplacing};

}  // namespace ssdpulse::model
