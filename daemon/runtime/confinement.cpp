// SPDX-License-Identifier: Apache-2.0
// The list names what is refused, not what is allowed: a C library that does an old thing with a new call must not
// break the daemon. The unit for systemd adds the list of what is allowed.
#include "daemon/runtime/confinement.h"

#include <linux/bpf.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/runtime/file_access.h"
#include "daemon/runtime/privileges.h"
#include "daemon/util/log.h"
#include "daemon/util/system_calls.h"

namespace ssdpulse::runtime {
namespace {

using util::SystemCall;
using When = SystemCall::When;

constexpr mode_t kHistoryMode = 0750;

constexpr SystemCall kRefused[] = {
    // The tables are mapped and the programs attached: bpf() only tells how often they ran.
    {"bpf", When::argument_is_not, 0, BPF_OBJ_GET_INFO_BY_FD},
    // Listening sockets and the one for uevents are there; what is still opened goes to the log reader, the service
    // manager and the journal.
    {"socket", When::argument_is_not, 0, AF_UNIX},
    // Other programs, other processes.
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
    // Would do all of the above, and open files, without asking this list.
    {"io_uring_setup"},
    {"io_uring_enter"},
    {"io_uring_register"},
    // What the host looks like.
    {"mount"},
    {"umount2"},
    {"pivot_root"},
    {"chroot"},
    {"move_mount"},
    {"open_tree"},
    {"open_tree_attr"},
    {"mount_setattr"},
    {"fsopen"},
    {"fsconfig"},
    {"fsmount"},
    {"fspick"},
    {"unshare"},
    {"setns"},
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

util::Result<void> refuse_calls_of_others() { return util::refuse_system_calls(kRefused); }

util::Result<void> confine(const std::string& history_directory) {
  if (!history_directory.empty()) {
    ::mkdir(history_directory.c_str(), kHistoryMode);  // what is wrong with it, the history will say
  }
  if (auto dropped = drop_all_capabilities(); !dropped) {
    return dropped;
  }
  const auto files = restrict_file_access(history_directory);
  if (!files) {
    return tl::make_unexpected(files.error());
  }
  if (*files == FileAccess::unrestricted && ::geteuid() == 0) {
    spdlog::warn(
        "this kernel has no Landlock: as root the daemon could still open what root owns; run it by its systemd unit");
  }
  return refuse_calls_of_others();
}

}  // namespace ssdpulse::runtime
