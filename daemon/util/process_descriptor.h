// SPDX-License-Identifier: Apache-2.0
// When has a child ended? Its descriptor is readable from then on.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "daemon/util/unique_fd.h"

namespace ssdpulse::util {

/// The descriptor of a child: readable once all of its threads have ended. Called by number: before version 2.37, the C
/// library's header for pidfd_open() cannot be used in C++.
inline UniqueFd process_descriptor(pid_t child) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
}

}  // namespace ssdpulse::util
