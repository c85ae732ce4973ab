// SPDX-License-Identifier: Apache-2.0
// System call filters for the calling process, all its threads and whatever it starts. They can be added to but never
// removed. A refused call fails with EPERM, so that an oversight is an error in the log and not a crash. clone3 always
// fails with ENOSYS: no filter can inspect its arguments, and C libraries fall back to clone. Only this folder
// includes libseccomp. Both functions set no_new_privs; calls that only other machines have are ignored, but a name
// that libseccomp does not know, without a number, is an error.
#pragma once

#include <linux/sched.h>

#include <cstdint>
#include <span>

#include "daemon/base/result.h"

namespace ssdpulse::util {

struct SystemCall {
  enum class When : std::uint8_t {
    always,
    argument_is,          // in the bits of `mask`; for an int, as in the kernel, without the upper half of the register
    argument_is_not,      // compares all of its bits
    argument_has_any_of,  // the bits of `value`
  };

  const char* name = nullptr;
  When when = When::always;
  unsigned argument = 0;  // its number, from 0
  std::uint64_t value = 0;
  std::uint64_t mask = 0xffffffff;
  int number = -1;  // for a libseccomp older than the call: calls since Linux 5.1 have the same one on all machines
};

/// Flags of clone that make namespaces. CLONE_NEWTIME is not one of them: clone takes that bit as part of the signal.
inline constexpr std::uint64_t kNewNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

/// All other calls stay allowed.
Result<void> refuse_system_calls(std::span<const SystemCall> refused);

/// All other calls are refused. A call may be listed several times, with different conditions.
Result<void> allow_only_system_calls(std::span<const SystemCall> allowed);

}  // namespace ssdpulse::util
