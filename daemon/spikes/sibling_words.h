// SPDX-License-Identifier: Apache-2.0
// sibling_words(): which drive is slower than its siblings at equal load, and what else is different about it. Pure.
#pragma once

#include <string>

#include "daemon/model/snapshot.h"

namespace ssdpulse::spikes {

inline constexpr std::string_view kSiblingRunbook = "SsdpulseSlowerThanSiblings";
inline constexpr std::string_view kSiblingNext =
    "See whether it stays slow in another slot, or with the firmware of the others; if so, replace it.";

/// " nvme3n1 is 4.0 times slower than its 7 siblings in md0 at equal load (reads take 400 us, theirs 100 us); firmware,
/// temperature and wear are the same.": the slowest and those of its group, or only `device`. Empty: none is.
std::string sibling_words(const model::Snapshot& now, const std::string& device = "");

}  // namespace ssdpulse::spikes
