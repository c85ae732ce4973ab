// SPDX-License-Identifier: Apache-2.0
// The system calls that the process with CAP_SYS_ADMIN needs. There are few, and all others are refused: of what the
// capability permits, only sending admin commands remains, and of files, only reading. No filter can look into a
// command: which ones are sent is for the worker to control (drive_commands.h).
#pragma once

#include "daemon/util/result.h"

namespace ssdpulse::nvme_reader {

/// For good, for the calling process and its children.
util::Result<void> refuse_calls_but_the_readers();

/// After that, in the worker, to which messages come from outside: no other process, neither to start nor to signal.
util::Result<void> refuse_calls_of_the_supervisor();

}  // namespace ssdpulse::nvme_reader
