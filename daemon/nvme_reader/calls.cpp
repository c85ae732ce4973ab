// SPDX-License-Identifier: Apache-2.0
// System calls that the reader and its supervisor make, and that the C library makes for them, in Debian 12 and 13.
#include "daemon/nvme_reader/calls.h"

#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <vector>

#include "daemon/util/system_calls.h"

namespace ssdpulse::nvme_reader {
namespace {

using util::SystemCall;
using When = SystemCall::When;

/// Opening a file without these flags only allows reading. O_TMPFILE needs one of them.
constexpr std::uint64_t kWriting = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;

constexpr SystemCall kAllowed[] = {
    // Drives and sysfs. No other request of ioctl(2) reaches any device.
    {"ioctl", When::argument_is, 1, NVME_IOCTL_ADMIN_CMD},
    {"ioctl", When::argument_is, 1, NVME_IOCTL_ADMIN64_CMD},
    {"openat", When::argument_is, 2, 0, kWriting},
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
    {"clone", When::argument_is, 0, 0, util::kNewNamespaces},
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
    {"sigaltstack"},  // affects only the thread; a sanitized build dies without it
    {"brk"},
    {"getrandom"},
    {"madvise"},
    {"mmap"},
    {"mprotect"},
    {"munmap"},
    {"prlimit64", When::argument_is, 0, 0},  // only its own
    {"seccomp"},                             // can only take rights away
};

constexpr SystemCall kOfSupervisorAlone[] = {
    {"accept4"}, {"clone", When::argument_is, 0, 0, CLONE_THREAD},  // processes
    {"kill"},    {"pidfd_open"},
    {"wait4"},   {"seccomp"},
};

}  // namespace

util::Result<void> refuse_calls_but_the_readers() { return util::allow_only_system_calls(kAllowed); }

util::Result<void> refuse_calls_of_the_supervisor() {
  std::vector<SystemCall> refused(std::begin(kOfSupervisorAlone), std::end(kOfSupervisorAlone));
  // abort() sends the process a signal.
  refused.push_back({"tgkill", When::argument_is_not, 0, static_cast<std::uint64_t>(::getpid())});
  return util::refuse_system_calls(refused);
}

}  // namespace ssdpulse::nvme_reader
