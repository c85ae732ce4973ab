// SPDX-License-Identifier: Apache-2.0
// The hypothetical drives that are modelled, and what is assumed about a drive of a given size.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/flash.h"

namespace ssdpulse::analysis {

using model::Discards;
using model::Placement;
using model::UnknownPages;
using model::WhatIf;

/// The what-ifs for each drive, the most useful first: the middle policy at the presumed over-provisioning of this
/// drive, the other policies, the start from empty, discards ignored, hints used, and other over-provisioning. If
/// memory is short, the last ones are left out.
std::vector<WhatIf> default_what_ifs(double overprovisioning);

/// Published or usual over-provisioning by the nominal size: 960 GB times a power of two (from 240 GB) keeps
/// 10 to 20 %, 800 GB times a power of two (from 200 GB) is the same flash with 30 to 45 %, all others, most likely
/// client drives, have 7 to 10 %.
struct UsualOverprovisioning {
  double likely;
  double lower;
  double upper;
};
UsualOverprovisioning usual_overprovisioning(std::uint64_t drive_bytes);

/// Pages per block of a drive with this many followed pages: a power of two that gives 768 to 1,536 blocks, about as
/// many as drives have superblocks. 64 pages at the usual 65,536 followed ones.
std::uint32_t model_block_pages(std::uint64_t pages);

}  // namespace ssdpulse::analysis
