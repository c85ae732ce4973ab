// SPDX-License-Identifier: Apache-2.0
// When has a child ended? Its descriptor is readable from then on.
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "daemon/util/unique_fd.h"

namespace ssdpulse::util {

/// Of a child: readable once all of its threads have ended. By number: the C library's header of pidfd_open() is not
/// fit for C++ before its version 2.37.
inline UniqueFd process_descriptor(pid_t child) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
}

}  // namespace ssdpulse::util
