// SPDX-License-Identifier: Apache-2.0
// keep_capabilities(): gives up the capabilities of this process once it needs few or none.
#pragma once

#include <span>

#include "daemon/util/result.h"

namespace ssdpulse::confinement {

/// Gives up every capability except those of `wanted` (CAP_...) that the process has: in all sets, in the bounding set
/// if permitted, and with no way to regain any (no_new_privs). The process need not have any of `wanted`.
/// Applies to the calling thread and to threads started later: call it before there are others.
util::Result<void> keep_capabilities(std::span<const int> wanted);

}  // namespace ssdpulse::confinement
