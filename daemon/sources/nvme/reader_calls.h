// SPDX-License-Identifier: Apache-2.0
// Which system calls does the process with CAP_SYS_ADMIN need? Few, so all others are refused: of what the capability
// permits, sending admin commands is all that remains.
#pragma once

#include "daemon/util/result.h"

namespace ssdpulse::nvme {

/// For good, for the calling process and its children.
util::Result<void> refuse_calls_but_the_readers();

}  // namespace ssdpulse::nvme
