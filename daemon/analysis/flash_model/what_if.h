// SPDX-License-Identifier: Apache-2.0
// Of which drive is it asked what it would relocate?
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/flash.h"

namespace ssdpulse::analysis {

using model::Discards;
using model::Placement;
using model::UnknownPages;
using model::WhatIf;

/// What is asked of each drive, the most useful first: the middle policy at what this drive is thought to have, the
/// other policies, the start from empty, discards ignored, hints used, and other over-provisioning. Where memory is
/// short, the last ones are left out.
std::vector<WhatIf> default_what_ifs(double overprovisioning);

/// Published or usual over-provisioning by the nominal size: 960 GB and its multiples keep 10 to 20 %, 800 GB and its
/// multiples are the same flash with 30 to 45 %, all others, client drives most likely, 7 to 10 %.
struct UsualOverprovisioning {
  double likely;
  double lower;
  double upper;
};
UsualOverprovisioning usual_overprovisioning(std::uint64_t drive_bytes);

/// Blocks of a drive of so many followed pages: as many as a drive of 1000 to 2000 superblocks has, and a power of two.
/// 64 pages at the usual 65,536 followed ones.
std::uint32_t model_block_pages(std::uint64_t pages);

}  // namespace ssdpulse::analysis
