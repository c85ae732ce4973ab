// SPDX-License-Identifier: Apache-2.0
// What can this process still ask of the kernel? Filters on system calls, for the calling process with all its threads
// and for whatever it starts: they can be added to, never taken back. A refused call fails with EPERM, so that what was
// overlooked is an error in a log and not a death. The only room that includes libseccomp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "daemon/util/result.h"

namespace ssdpulse::util {

struct SystemCall {
  enum class When : std::uint8_t { always, argument_is, argument_is_not };

  const char* name = nullptr;
  When when = When::always;
  unsigned argument = 0;  // its number, from 0
  std::uint64_t value = 0;
};

/// Everything else goes on as before. Names that this machine does not have mean nothing. Sets no_new_privs.
Result<void> refuse_system_calls(std::span<const SystemCall> refused);

/// Everything else is refused. A call may stand there several times, with different conditions.
Result<void> allow_only_system_calls(std::span<const SystemCall> allowed);

}  // namespace ssdpulse::util
