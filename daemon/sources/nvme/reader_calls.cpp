// SPDX-License-Identifier: Apache-2.0
// What the reader and its supervisor do themselves, and what the C library does for them, in Debian 12 and 13.
#include "daemon/sources/nvme/reader_calls.h"

#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>

#include "daemon/util/system_calls.h"

namespace ssdpulse::nvme {
namespace {

using util::SystemCall;
using When = SystemCall::When;

constexpr SystemCall kAllowed[] = {
    // Drives and sysfs. No other request of ioctl(2) reaches any device.
    {"ioctl", When::argument_is, 1, NVME_IOCTL_ADMIN_CMD},
    {"ioctl", When::argument_is, 1, NVME_IOCTL_ADMIN64_CMD},
    {"open"},
    {"openat"},
    {"close"},
    {"read"},
    {"lseek"},
    {"fstat"},
    {"newfstatat"},
    {"statx"},
    // The daemon.
    {"accept4"},
    {"getsockopt"},
    {"poll"},
    {"ppoll"},
    {"recvfrom"},
    {"sendto"},
    // The log, and the time in it.
    {"write"},
    {"writev"},
    {"clock_gettime"},
    {"gettimeofday"},
    {"time"},
    // Threads and workers.
    {"clone"},
    {"clone3"},
    {"fork"},
    {"exit"},
    {"exit_group"},
    {"futex"},
    {"getpid"},
    {"getppid"},
    {"gettid"},
    {"kill"},
    {"tgkill"},
    {"pidfd_open"},
    {"prctl"},
    {"rseq"},
    {"sched_getaffinity"},
    {"sched_yield"},
    {"set_robust_list"},
    {"wait4"},
    {"clock_nanosleep"},
    {"nanosleep"},
    {"restart_syscall"},
    // Signals and memory.
    {"rt_sigaction"},
    {"rt_sigprocmask"},
    {"rt_sigreturn"},
    {"sigaltstack"},  // of the thread alone; a sanitized build ends without it
    {"brk"},
    {"getrandom"},
    {"madvise"},
    {"mmap"},
    {"mprotect"},
    {"munmap"},
    {"prlimit64"},
};

}  // namespace

util::Result<void> refuse_calls_but_the_readers() { return util::allow_only_system_calls(kAllowed); }

}  // namespace ssdpulse::nvme
