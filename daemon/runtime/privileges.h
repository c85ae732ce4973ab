// SPDX-License-Identifier: Apache-2.0
// Gives up the privileges of this process.
#pragma once

#include "daemon/util/result.h"

namespace ssdpulse::runtime {

/// Gives up every capability, the bounding set where permitted, and the way to gain any back (no_new_privs).
/// Applies to the calling thread and to threads started later: call it before there are others.
util::Result<void> drop_all_capabilities();

}  // namespace ssdpulse::runtime
