// SPDX-License-Identifier: Apache-2.0
// process_descriptor(): a descriptor that shows when a child has ended.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "daemon/util/unique_fd.h"

namespace ssdpulse::util {

/// Readable once all threads of the child have ended. Invalid on failure, with errno set. Called by number: before
/// version 2.37, the C library's header for pidfd_open() cannot be used in C++.
inline UniqueFd process_descriptor(pid_t child) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
}

}  // namespace ssdpulse::util
