// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/confinement.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/landlock.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/log.h"
#include "daemon/base/system_calls.h"

namespace ssdpulse::confinement {
namespace {

using Capabilities = std::unique_ptr<std::remove_pointer_t<cap_t>, int (*)(void*)>;

/// Copies those of `wanted` that `held` has, both as permitted and as effective.
bool copy_permitted(cap_t held, std::span<const int> wanted, cap_t kept) {
  for (const cap_value_t capability : wanted) {
    cap_flag_value_t permitted = CAP_CLEAR;
    if (cap_get_flag(held, capability, CAP_PERMITTED, &permitted) != 0 ||
        cap_set_flag(kept, CAP_PERMITTED, 1, &capability, permitted) != 0 ||
        cap_set_flag(kept, CAP_EFFECTIVE, 1, &capability, permitted) != 0) {
      return false;
    }
  }
  return true;
}

constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE;
constexpr std::uint64_t kTruncate = std::uint64_t{1} << 14;  // since Linux 6.2; older headers lack it
constexpr std::uint64_t kWrite = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                                 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                 LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
constexpr std::uint64_t kDirectoriesOnly = ~(kRead | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate);

/// The status of the file as it is known without asking a server: a mount whose server is gone would block forever.
std::optional<struct statx> status_of(const util::UniqueFd& file) {
  struct statx status {};
  constexpr int kFlags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
  if (!file.valid() || ::statx(file.get(), "", kFlags, STATX_TYPE | STATX_INO, &status) != 0) {
    return std::nullopt;
  }
  return status;
}

/// A Landlock ruleset. Makes the system calls itself: the C library has no wrappers.
class Ruleset {
 public:
  /// Handles all rights to read and write that this kernel knows.
  static util::Result<Ruleset> make(long version) {
    landlock_ruleset_attr handled{};
    handled.handled_access_fs = kRead | kWrite | (version >= 3 ? kTruncate : 0);
    util::UniqueFd fd(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0)));
    if (!fd.valid()) {
      return util::fail_errno("cannot restrict files");
    }
    return Ruleset(std::move(fd), handled.handled_access_fs);
  }

  /// A path that does not exist is not allowed, which is no error.
  util::Result<void> allow(const util::UniqueFd& path, std::uint64_t access) {
    const auto status = status_of(path);
    if (!status) {
      return {};
    }
    landlock_path_beneath_attr rule{};
    rule.allowed_access = access & handled_ & (S_ISDIR(status->stx_mode) ? ~std::uint64_t{0} : ~kDirectoriesOnly);
    rule.parent_fd = path.get();
    if (::syscall(SYS_landlock_add_rule, fd_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
      return util::fail_errno("cannot allow files");
    }
    return {};
  }

  util::Result<void> enforce() {
    if (::syscall(SYS_landlock_restrict_self, fd_.get(), 0) != 0) {
      return util::fail_errno("cannot restrict files");
    }
    return {};
  }

 private:
  Ruleset(util::UniqueFd fd, std::uint64_t handled) : fd_(std::move(fd)), handled_(handled) {}

  util::UniqueFd fd_;
  std::uint64_t handled_;
};

util::UniqueFd open_path(const std::string& path, int flags = 0) {
  return util::UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC | flags));
}

bool is_same(const util::UniqueFd& a, const util::UniqueFd& b) {
  const auto first = status_of(a);
  const auto second = status_of(b);
  return first && second && first->stx_dev_major == second->stx_dev_major &&
         first->stx_dev_minor == second->stx_dev_minor && first->stx_ino == second->stx_ino;
}

/// False for a device, to which a link in the root may lead.
bool is_file_or_directory(const util::UniqueFd& file) {
  const auto status = status_of(file);
  return status && (S_ISREG(status->stx_mode) || S_ISDIR(status->stx_mode));
}

/// Rules can only allow, not forbid: so they name everything in the root except /dev.
util::Result<void> allow_reading_all_but_devices(Ruleset& rules) {
  const std::unique_ptr<DIR, int (*)(DIR*)> root(::opendir("/"), ::closedir);
  if (!root) {
    return util::fail_errno("cannot read /");
  }
  const util::UniqueFd devices = open_path("/dev", O_DIRECTORY);
  while (const dirent* entry = ::readdir(root.get())) {
    const std::string name = entry->d_name;
    const util::UniqueFd file = name == "." || name == ".." ? util::UniqueFd() : open_path("/" + name);
    if (is_file_or_directory(file) && !is_same(file, devices)) {
      if (auto allowed = rules.allow(file, kRead); !allowed) {
        return allowed;
      }
    }
  }
  return {};
}

using util::SystemCall;
using When = SystemCall::When;

constexpr mode_t kHistoryMode = 0750;
constexpr std::uint64_t kSocketType = 0xf;  // the rest are flags

// The lists have the calls that are refused, not those allowed: a C library that does an old thing with a new call must
// not break the daemon. The systemd unit adds the list of allowed calls.

constexpr SystemCall kRefusedForms[] = {
    // The tables are mapped and the programs attached: bpf() is only needed to report how often they ran.
    {"bpf", When::argument_is_not, 0, BPF_OBJ_GET_INFO_BY_FD},
    // The listening sockets, the journal's and the one for uevents are already open. A stream leads to services that
    // run other programs (service managers, container engines), and AF_UNIX treats SOCK_RAW as a datagram.
    {"socket", When::argument_is_not, 0, AF_UNIX},
    {"socket", When::argument_is, 1, SOCK_STREAM, kSocketType},
    {"socket", When::argument_is, 1, SOCK_RAW, kSocketType},
    // Open files are read, written, mapped. The only ioctl needed is the one by which the C library recognizes a
    // terminal.
    {"ioctl", When::argument_is_not, 1, TCGETS},
    // O_TRUNC empties a file even if it is opened to read, or for nothing at all, and before 6.2 Landlock allows that.
    {"open", When::argument_is, 1, O_TRUNC, O_TRUNC | O_ACCMODE},
    {"open", When::argument_is, 1, O_TRUNC | O_ACCMODE, O_TRUNC | O_ACCMODE},
    {"openat", When::argument_is, 2, O_TRUNC, O_TRUNC | O_ACCMODE},
    {"openat", When::argument_is, 2, O_TRUNC | O_ACCMODE, O_TRUNC | O_ACCMODE},
    // The kernel sends the signal of F_SETSIG to the process of F_SETOWN, on behalf of the user who owns the file.
    {"fcntl", When::argument_is, 1, F_SETOWN},
    {"fcntl", When::argument_is, 1, F_SETOWN_EX},
    {"fcntl", When::argument_is, 1, F_SETSIG},
    {"prlimit64", When::argument_is_not, 0, 0},
    {"clone", When::argument_has_any_of, 0, util::kNewNamespaces},
    // As the calls of the next list, but newer than some versions of libseccomp.
    {.name = "fchmodat2", .number = 452},
    {.name = "setxattrat", .number = 463},
    {.name = "removexattrat", .number = 466},
    {.name = "open_tree_attr", .number = 467},
    {.name = "file_setattr", .number = 469},
};

constexpr const char* kRefusedCalls[] = {
    // One end of the pair could still send to anybody.
    "socketpair",
    // Its flags are in memory, where a filter cannot see whether O_TRUNC is among them.
    "openat2",
    // The attributes of files, and the length of those never opened. As root, SQLite tries to give its journal to the
    // owner of the database, which then is root, and continues if that fails.
    "truncate", "truncate64", "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "fchownat", "setxattr",
    "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "utime", "utimes", "futimesat",
    "utimensat",
    // Other programs, other processes.
    "kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal", "setpriority", "sched_setaffinity",
    "sched_setscheduler", "sched_setparam", "sched_setattr", "ioprio_set", "execve", "execveat", "uselib", "ptrace",
    "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp", "personality", "userfaultfd",
    "perf_event_open",
    // These could do all of the above, and open files, bypassing this list.
    "io_uring_setup", "io_uring_enter", "io_uring_register",
    // The layout of the host: mounts, namespaces, swap, nodes.
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "mount_setattr", "fsopen", "fsconfig",
    "fsmount", "fspick", "unshare", "setns", "quotactl", "quotactl_fd", "swapon", "swapoff", "acct", "mknod", "mknodat",
    "open_by_handle_at", "name_to_handle_at", "fanotify_init",
    // The kernel itself.
    "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "syslog", "keyctl",
    "add_key", "request_key", "iopl", "ioperm", "modify_ldt", "vhangup", "settimeofday", "clock_settime",
    "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "lookup_dcookie", "nfsservctl"};

}  // namespace

util::Result<void> keep_capabilities(std::span<const int> wanted) {
  for (cap_value_t capability = 0; cap_get_bound(capability) >= 0; ++capability) {
    // Without CAP_SETPCAP the bounding set stays; no_new_privs below makes it meaningless.
    cap_drop_bound(capability);
  }
  cap_reset_ambient();
  const Capabilities held(cap_get_proc(), cap_free);
  const Capabilities kept(cap_init(), cap_free);
  if (!held || !kept || !copy_permitted(held.get(), wanted, kept.get())) {
    return util::fail_errno("cannot read capabilities");
  }
  if (cap_set_proc(kept.get()) != 0) {
    return util::fail_errno("cannot drop capabilities");
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return util::fail_errno("cannot set no_new_privs");
  }
  return {};
}

util::Result<FileAccess> restrict_file_access(const std::string& writable) {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, std::uint32_t{LANDLOCK_CREATE_RULESET_VERSION});
  if (version < 0) {
    return errno == ENOSYS || errno == EOPNOTSUPP ? util::Result<FileAccess>(FileAccess::unrestricted)
                                                  : util::fail_errno("cannot restrict files");
  }
  auto rules = Ruleset::make(version);
  util::Result<void> done = rules ? allow_reading_all_but_devices(*rules) : tl::make_unexpected(rules.error());
  const auto allow = [&](const std::string& path, std::uint64_t access) {
    if (done) {
      done = rules->allow(open_path(path), access);
    }
  };
  allow("/dev/null", kRead | kWrite | kTruncate);
  allow("/dev/urandom", kRead);
  if (!writable.empty()) {
    allow(writable, kRead | kWrite | kTruncate);
  }
  if (done) {
    done = rules->enforce();
  }
  return done ? util::Result<FileAccess>(FileAccess::restricted) : tl::make_unexpected(done.error());
}

util::Result<void> refuse_calls_of_others(Partners partners) {
  std::vector<SystemCall> refused(std::begin(kRefusedForms), std::end(kRefusedForms));
  for (const char* call : kRefusedCalls) {
    refused.push_back({call});
  }
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
