// SPDX-License-Identifier: Apache-2.0
// sibling_groups(): which devices of a host ought to be alike. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "daemon/model/sibling_latency.h"
#include "daemon/model/stage.h"

namespace ssdpulse::siblings {

/// Of all groups together: what is compared costs time. One for which there is no room is left out as a whole.
inline constexpr std::size_t kMaxPlaces = 512;

/// Members that a group needs for one of them to be held against the others.
constexpr std::size_t min_members(model::SiblingKind kind) { return kind == model::SiblingKind::model ? 4 : 3; }

/// `groups` and `groups_left_out`: those with enough members, arrays first. Of the members of an array, those of one
/// drive model: an older or smaller one is slower by right. Arrays on the same drives (md below LVM) are one. A drive
/// with several block devices is in no group, as its load is not that of any one of them; a path only in that of its
/// multipath device.
model::SiblingFigures sibling_groups(const model::Tick& tick);

}  // namespace ssdpulse::siblings
