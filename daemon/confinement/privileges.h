// SPDX-License-Identifier: Apache-2.0
// Which rights does this process still hold, once it needs few or none?
#pragma once

#include <span>

#include "daemon/util/result.h"

namespace ssdpulse::confinement {

/// Gives up every capability but those of `wanted` (CAP_...) that the process has: in all sets, the bounding set where
/// permitted, and the way to gain any back (no_new_privs). None of `wanted` need be there.
/// Applies to the calling thread and to threads started later: call it before there are others.
util::Result<void> keep_capabilities(std::span<const int> wanted);

}  // namespace ssdpulse::confinement
