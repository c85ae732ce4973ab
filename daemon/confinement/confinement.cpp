// SPDX-License-Identifier: Apache-2.0
// The list names the calls that are refused, not those allowed: a C library that does an old thing with a new call must
// not break the daemon. The systemd unit adds the list of allowed calls.
#include "daemon/confinement/confinement.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "daemon/confinement/file_access.h"
#include "daemon/confinement/privileges.h"
#include "daemon/util/log.h"
#include "daemon/util/system_calls.h"

namespace ssdpulse::confinement {
namespace {

using util::SystemCall;
using When = SystemCall::When;

constexpr mode_t kHistoryMode = 0750;
constexpr std::uint64_t kSocketType = 0xf;  // the rest are flags

constexpr SystemCall kRefused[] = {
    // The tables are mapped and the programs attached: bpf() is only needed to report how often they ran.
    {"bpf", When::argument_is_not, 0, BPF_OBJ_GET_INFO_BY_FD},
    // The listening sockets, the journal's and the one for uevents are already open. A stream leads to services that
    // run other programs (service managers, container engines), and AF_UNIX treats SOCK_RAW as a datagram.
    {"socket", When::argument_is_not, 0, AF_UNIX},
    {"socket", When::argument_is, 1, SOCK_STREAM, kSocketType},
    {"socket", When::argument_is, 1, SOCK_RAW, kSocketType},
    {"socketpair"},  // one end of which can still send to anybody
    // Open files are read, written, mapped. The only ioctl needed is the one by which the C library recognizes a
    // terminal.
    {"ioctl", When::argument_is_not, 1, TCGETS},
    // The attributes of files, and the length of those never opened. As root, SQLite tries to give its journal to the
    // owner of the database, which then is root, and continues if that fails.
    {"truncate"},
    {"truncate64"},
    // O_TRUNC empties a file even if it is opened to read, or for nothing at all, and before 6.2 Landlock allows that.
    {"open", When::argument_is, 1, O_TRUNC, O_TRUNC | O_ACCMODE},
    {"open", When::argument_is, 1, O_TRUNC | O_ACCMODE, O_TRUNC | O_ACCMODE},
    {"openat", When::argument_is, 2, O_TRUNC, O_TRUNC | O_ACCMODE},
    {"openat", When::argument_is, 2, O_TRUNC | O_ACCMODE, O_TRUNC | O_ACCMODE},
    {"openat2"},
    {"chmod"},
    {"fchmod"},
    {"fchmodat"},
    {.name = "fchmodat2", .number = 452},
    {"chown"},
    {"fchown"},
    {"lchown"},
    {"fchownat"},
    {"setxattr"},
    {"lsetxattr"},
    {"fsetxattr"},
    {.name = "setxattrat", .number = 463},
    {"removexattr"},
    {"lremovexattr"},
    {"fremovexattr"},
    {.name = "removexattrat", .number = 466},
    {.name = "file_setattr", .number = 469},
    {"utime"},
    {"utimes"},
    {"futimesat"},
    {"utimensat"},
    // Other programs, other processes.
    {"kill"},
    {"tkill"},
    {"rt_sigqueueinfo"},
    {"rt_tgsigqueueinfo"},
    {"pidfd_send_signal"},
    // The kernel sends the signal of F_SETSIG to the process of F_SETOWN, on behalf of the user who owns the file.
    {"fcntl", When::argument_is, 1, F_SETOWN},
    {"fcntl", When::argument_is, 1, F_SETOWN_EX},
    {"fcntl", When::argument_is, 1, F_SETSIG},
    {"prlimit64", When::argument_is_not, 0, 0},
    {"setpriority"},
    {"sched_setaffinity"},
    {"sched_setscheduler"},
    {"sched_setparam"},
    {"sched_setattr"},
    {"ioprio_set"},
    {"execve"},
    {"execveat"},
    {"uselib"},
    {"ptrace"},
    {"process_vm_readv"},
    {"process_vm_writev"},
    {"process_madvise"},
    {"pidfd_getfd"},
    {"kcmp"},
    {"personality"},
    {"userfaultfd"},
    {"perf_event_open"},
    // These could do all of the above, and open files, bypassing this list.
    {"io_uring_setup"},
    {"io_uring_enter"},
    {"io_uring_register"},
    // The layout of the host: mounts, namespaces, swap, nodes.
    {"mount"},
    {"umount2"},
    {"pivot_root"},
    {"chroot"},
    {"move_mount"},
    {"open_tree"},
    {.name = "open_tree_attr", .number = 467},
    {"mount_setattr"},
    {"fsopen"},
    {"fsconfig"},
    {"fsmount"},
    {"fspick"},
    {"unshare"},
    {"setns"},
    {"clone", When::argument_has_any_of, 0, util::kNewNamespaces},
    {"quotactl"},
    {"quotactl_fd"},
    {"swapon"},
    {"swapoff"},
    {"acct"},
    {"mknod"},
    {"mknodat"},
    {"open_by_handle_at"},
    {"name_to_handle_at"},
    {"fanotify_init"},
    // The kernel itself.
    {"init_module"},
    {"finit_module"},
    {"delete_module"},
    {"kexec_load"},
    {"kexec_file_load"},
    {"reboot"},
    {"syslog"},
    {"keyctl"},
    {"add_key"},
    {"request_key"},
    {"iopl"},
    {"ioperm"},
    {"modify_ldt"},
    {"vhangup"},
    {"settimeofday"},
    {"clock_settime"},
    {"clock_adjtime"},
    {"adjtimex"},
    {"sethostname"},
    {"setdomainname"},
    {"lookup_dcookie"},
    {"nfsservctl"},
};

}  // namespace

util::Result<void> refuse_calls_of_others(Partners partners) {
  std::vector<SystemCall> refused(std::begin(kRefused), std::end(kRefused));
  // abort() sends a signal to its own process.
  refused.push_back({"tgkill", When::argument_is_not, 0, static_cast<std::uint64_t>(::getpid())});
  if (!partners.log_reader) {
    refused.push_back({"socket", When::argument_is, 1, SOCK_SEQPACKET, kSocketType});
    refused.push_back({"connect"});
  }
  if (!partners.service_manager) {
    refused.push_back({"socket", When::argument_is, 1, SOCK_DGRAM, kSocketType});
  }
  if (!partners.later_clients) {
    refused.push_back({"bind"});
    refused.push_back({"listen"});
  }
  return util::refuse_system_calls(refused);
}

util::Result<void> confine(const std::string& history_directory, Partners partners) {
  if (!history_directory.empty()) {
    ::mkdir(history_directory.c_str(), kHistoryMode);  // if this fails, the history reports why
  }
  if (auto dropped = keep_capabilities({}); !dropped) {
    return dropped;
  }
  const auto files = restrict_file_access(history_directory);
  if (!files) {
    return tl::make_unexpected(files.error());
  }
  if (*files == FileAccess::unrestricted && ::geteuid() == 0) {
    log::warning(
        "this kernel has no Landlock: as root the daemon could still open what root owns; run it as its systemd unit");
  }
  return refuse_calls_of_others(partners);
}

}  // namespace ssdpulse::confinement
