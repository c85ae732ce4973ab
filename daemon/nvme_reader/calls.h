// SPDX-License-Identifier: Apache-2.0
// The system calls that the process with CAP_SYS_ADMIN needs. They are few, and all others are refused: of what the
// capability permits, only sending admin commands remains, and files can only be read. No filter can look into a
// command: the worker controls which ones are sent (drive_commands.h).
#pragma once

#include "daemon/util/result.h"

namespace ssdpulse::nvme_reader {

/// For good, for the calling process and its children.
util::Result<void> refuse_calls_but_the_readers();

/// After that, in the worker, which receives messages from outside: it can neither start nor signal another process.
util::Result<void> refuse_calls_of_the_supervisor();

}  // namespace ssdpulse::nvme_reader
