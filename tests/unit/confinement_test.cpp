// SPDX-License-Identifier: Apache-2.0
// Can a process that confined itself still do what it gave up? Children of the test confine themselves and try. Each
// refused call is made so that it would fail differently without the filter: EPERM can only come from the filter.
#include "daemon/base/confinement.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <linux/nvme_ioctl.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "daemon/base/system_calls.h"
#include "daemon/nvme_reader/reader_process.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::confinement {
namespace {

/// What `work` returns in a process of its own; "died" if that dies.
std::string in_child(const std::function<std::string()>& work) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string said = work();
    _exit(::write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string said;
  char piece[512];
  for (ssize_t got = 0; (got = ::read(ends[0], piece, sizeof piece)) > 0;) {
    said.append(piece, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? said : said + "died";
}

int error_of(long result) { return result < 0 ? errno : 0; }

struct Attempt {
  const char* name;
  std::function<long()> call;
};

constexpr int kNobody = 0x7fffffff;  // no such process

long open_for(int flags) { return ::syscall(SYS_openat, AT_FDCWD, "/nowhere/x", flags, 0600); }

const std::vector<Attempt> kOfNoDaemon = {
    {"openat, to empty what is read", [] { return open_for(O_RDONLY | O_TRUNC | O_CLOEXEC); }},
    {"openat, to empty", [] { return open_for(O_ACCMODE | O_TRUNC); }},
    {"openat2", [] { return ::syscall(SYS_openat2, AT_FDCWD, "/nowhere/x", nullptr, 0); }},
    {"bpf map create", [] { return ::syscall(SYS_bpf, BPF_MAP_CREATE, nullptr, 0); }},
    {"bpf program load", [] { return ::syscall(SYS_bpf, BPF_PROG_LOAD, nullptr, 0); }},
    {"bpf map update", [] { return ::syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, nullptr, 0); }},
    {"bpf link create", [] { return ::syscall(SYS_bpf, BPF_LINK_CREATE, nullptr, 0); }},
    {"bpf, a command with high bits",
     [] { return ::syscall(SYS_bpf, 0x100000000UL | BPF_OBJ_GET_INFO_BY_FD, nullptr, 0); }},
    {"execve", [] { return ::syscall(SYS_execve, "/nowhere", nullptr, nullptr); }},
    {"execveat", [] { return ::syscall(SYS_execveat, -1, "nowhere", nullptr, nullptr, 0); }},
    {"fcntl, whom to signal", [] { return ::syscall(SYS_fcntl, -1, F_SETOWN, 1); }},
    {"fcntl, whom to signal, with high bits", [] { return ::syscall(SYS_fcntl, -1, 0x100000000UL | F_SETOWN, 1); }},
    {"fcntl, which thread to signal", [] { return ::syscall(SYS_fcntl, -1, F_SETOWN_EX, nullptr); }},
    {"fcntl, which signal", [] { return ::syscall(SYS_fcntl, -1, F_SETSIG, SIGKILL); }},
    {"setpriority", [] { return ::syscall(SYS_setpriority, 99, 1, 0); }},
    {"sched_setaffinity", [] { return ::syscall(SYS_sched_setaffinity, -1, 0, nullptr); }},
    {"sched_setscheduler", [] { return ::syscall(SYS_sched_setscheduler, -1, 0, nullptr); }},
    {"sched_setparam", [] { return ::syscall(SYS_sched_setparam, -1, nullptr); }},
    {"sched_setattr", [] { return ::syscall(SYS_sched_setattr, -1, nullptr, 0); }},
    {"ioprio_set", [] { return ::syscall(SYS_ioprio_set, 99, 1, 0); }},
    {"socketpair", [] { return ::syscall(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, nullptr); }},
    {"ptrace", [] { return ::syscall(SYS_ptrace, PTRACE_ATTACH, -1, nullptr, nullptr); }},
    {"process_vm_writev", [] { return ::syscall(SYS_process_vm_writev, -1, nullptr, 0, nullptr, 0, 0); }},
    {"mount", [] { return ::syscall(SYS_mount, nullptr, "/nowhere", nullptr, 0, nullptr); }},
    {"move_mount", [] { return ::syscall(SYS_move_mount, -1, "x", -1, "x", 0); }},
    {"unshare", [] { return ::syscall(SYS_unshare, 1); }},
    {"setns", [] { return ::syscall(SYS_setns, -1, 0); }},
    {"finit_module", [] { return ::syscall(SYS_finit_module, -1, "", 0); }},
    {"keyctl", [] { return ::syscall(SYS_keyctl, -1, 0, 0, 0, 0); }},
    {"perf_event_open", [] { return ::syscall(SYS_perf_event_open, nullptr, -1, -1, -1, 0); }},
    {"io_uring_enter", [] { return ::syscall(SYS_io_uring_enter, -1, 0, 0, 0, nullptr, 0); }},
    {"mknodat", [] { return ::syscall(SYS_mknodat, -1, "x", S_IFCHR, 0); }},
    {"open_by_handle_at", [] { return ::syscall(SYS_open_by_handle_at, -1, nullptr, 0); }},
    {"socket, inet", [] { return static_cast<long>(::socket(AF_INET, SOCK_STREAM, 0)); }},
    {"socket, netlink", [] { return static_cast<long>(::socket(AF_NETLINK, SOCK_RAW, 0)); }},
    {"socket, unix stream", [] { return static_cast<long>(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }},
    {"socket, unix raw", [] { return static_cast<long>(::socket(AF_UNIX, SOCK_RAW, 0)); }},
    {"ioctl, typing at a terminal", [] { return static_cast<long>(::ioctl(-1, TIOCSTI, "")); }},
    {"truncate", [] { return static_cast<long>(::truncate("/nowhere/x", 0)); }},
    {"fchmod", [] { return static_cast<long>(::fchmod(-1, 0)); }},
    {"fchmodat", [] { return ::syscall(SYS_fchmodat, AT_FDCWD, "/nowhere/x", 0); }},
    {"fchmodat2", [] { return ::syscall(452, AT_FDCWD, "/nowhere/x", 0, 0); }},
    {"fchown", [] { return static_cast<long>(::fchown(-1, 0, 0)); }},
    {"fchownat", [] { return static_cast<long>(::fchownat(AT_FDCWD, "/nowhere/x", 0, 0, 0)); }},
    {"setxattr", [] { return ::syscall(SYS_setxattr, "/nowhere/x", "user.x", "", 0, 0); }},
    {"fsetxattr", [] { return ::syscall(SYS_fsetxattr, -1, "user.x", "", 0, 0); }},
    {"setxattrat", [] { return ::syscall(463, AT_FDCWD, "/nowhere/x", 0, "user.x", nullptr, 0); }},
    {"lremovexattr", [] { return ::syscall(SYS_lremovexattr, "/nowhere/x", "user.x"); }},
    {"utimensat", [] { return static_cast<long>(::utimensat(AT_FDCWD, "/nowhere/x", nullptr, 0)); }},
#ifdef SYS_chmod
    {"chmod", [] { return ::syscall(SYS_chmod, "/nowhere/x", 0); }},
    {"chown", [] { return ::syscall(SYS_chown, "/nowhere/x", 0, 0); }},
    {"lchown", [] { return ::syscall(SYS_lchown, "/nowhere/x", 0, 0); }},
#endif
    {"kill", [] { return static_cast<long>(::kill(kNobody, 0)); }},
    {"tkill", [] { return ::syscall(SYS_tkill, kNobody, 0); }},
    {"tgkill", [] { return ::syscall(SYS_tgkill, kNobody, kNobody, 0); }},
    {"rt_sigqueueinfo", [] { return ::syscall(SYS_rt_sigqueueinfo, kNobody, 0, nullptr); }},
    {"pidfd_send_signal", [] { return ::syscall(SYS_pidfd_send_signal, -1, 0, nullptr, 0); }},
    {"limits of others", [] { return ::syscall(SYS_prlimit64, kNobody, RLIMIT_NOFILE, nullptr, nullptr); }},
};

using Refuse = std::function<util::Result<void>()>;

/// Each is refused after `refuse`, and was not before; where only root can see the difference, it is tested as root.
void expect_refused(const Refuse& refuse, const std::vector<Attempt>& attempts) {
  for (const Attempt& attempt : attempts) {
    if (::geteuid() == 0) {
      EXPECT_NE(error_of(attempt.call()), EPERM) << attempt.name << ": refused anyhow, so this shows nothing";
    }
    EXPECT_EQ(in_child([&] {
                if (const auto refused = refuse(); !refused) {
                  return refused.error().message;
                }
                return std::string(error_of(attempt.call()) == EPERM ? "refused" : std::strerror(errno));
              }),
              "refused")
        << attempt.name;
  }
}

/// clone() that would create namespaces; without the filter it fails because of CLONE_THREAD without CLONE_SIGHAND.
std::vector<Attempt> new_namespaces() {
  std::vector<Attempt> attempts;
  for (const auto& [name, flag] : std::initializer_list<std::pair<const char*, unsigned long>>{
           {"clone, mounts", CLONE_NEWNS},
           {"clone, cgroups", CLONE_NEWCGROUP},
           {"clone, host name", CLONE_NEWUTS},
           {"clone, IPC", CLONE_NEWIPC},
           {"clone, users", CLONE_NEWUSER},
           {"clone, processes", CLONE_NEWPID},
           {"clone, network", CLONE_NEWNET},
           {"clone, users and a signal", CLONE_NEWUSER | SIGCHLD}}) {
    attempts.push_back({name, [flags = flag | CLONE_THREAD] { return ::syscall(SYS_clone, flags, 0, 0, 0, 0); }});
  }
  return attempts;
}

/// The answer to clone3, whose flags no filter can see: the C library then uses clone.
std::string clone3_behind(const Refuse& refuse) {
  EXPECT_EQ(error_of(::syscall(SYS_clone3, nullptr, 0)), EINVAL);
  return in_child([&] {
    const auto refused = refuse();
    return refused ? std::string(std::strerror(error_of(::syscall(SYS_clone3, nullptr, 0)))) : refused.error().message;
  });
}

constexpr Partners kAll{true, true, true};

util::Result<void> refuse_with_all_partners() { return refuse_calls_of_others(kAll); }

TEST(Confinement, RefusesWhatNoDaemonNeeds) { expect_refused(refuse_with_all_partners, kOfNoDaemon); }

TEST(Confinement, MakesNoNamespaces) {
  expect_refused(refuse_with_all_partners, new_namespaces());
  EXPECT_EQ(clone3_behind(refuse_with_all_partners), std::strerror(ENOSYS));
}

/// The kinds of sockets that can still be created, and whether they can be connected.
std::string sockets_left(Partners partners) {
  return in_child([partners] {
    if (const auto refused = refuse_calls_of_others(partners); !refused) {
      return refused.error().message;
    }
    std::string left;
    for (const auto& [name, type] : {std::pair{"stream ", SOCK_STREAM | SOCK_NONBLOCK},
                                     {"datagrams ", SOCK_DGRAM | SOCK_CLOEXEC},
                                     {"raw ", SOCK_RAW},
                                     {"messages ", SOCK_SEQPACKET | SOCK_CLOEXEC}}) {
      left += ::socket(AF_UNIX, type, 0) >= 0 ? name : "";
    }
    left += error_of(::connect(-1, nullptr, 0)) == EPERM ? "" : "connected ";
    left += error_of(::bind(-1, nullptr, 0)) == EPERM ? "" : "bound ";
    return left + (error_of(::listen(-1, 1)) == EPERM ? "" : "listening ");
  });
}

TEST(Confinement, OpensSocketsToItsPartnersAlone) {
  EXPECT_EQ(sockets_left({}), "");
  EXPECT_EQ(sockets_left({.log_reader = true}), "messages connected ");
  EXPECT_EQ(sockets_left({.service_manager = true}), "datagrams ");
  EXPECT_EQ(sockets_left({.later_clients = true}), "bound listening ");
  EXPECT_EQ(sockets_left(kAll), "datagrams messages connected bound listening ");
}

TEST(Confinement, NoMisspeltCallGoesUnnoticed) {
  EXPECT_EQ(in_child([] {
              const util::SystemCall wrong[] = {{"getpid"}, {"exceve"}};
              const auto refused = util::refuse_system_calls(wrong);
              return refused ? "" : refused.error().message;
            }),
            "cannot filter system calls: libseccomp does not know exceve");
}

TEST(Confinement, LeavesWhatTheDaemonNeeds) {
  EXPECT_EQ(in_child([] {
              if (const auto refused = refuse_with_all_partners(); !refused) {
                return refused.error().message;
              }
              std::ostringstream wrong;
              bpf_attr attributes{};
              attributes.info.bpf_fd = static_cast<__u32>(-1);
              const int error = error_of(::syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attributes, sizeof attributes));
              if (error != EBADF && error != EBADFD && (error != EPERM || ::geteuid() == 0)) {
                wrong << "program info: " << std::strerror(error) << "; ";
              }
              std::thread([&] {
                if (::socket(AF_UNIX, SOCK_SEQPACKET, 0) < 0 || !std::ifstream("/proc/self/mountinfo")) {
                  wrong << "a unix socket or a file; ";
                }
              }).join();
              std::signal(SIGABRT, SIG_IGN);
              wrong << (::raise(SIGABRT) == 0 ? "" : "a signal to itself; ");
              return wrong.str();
            }),
            "");
}

/// Names of the device nodes in /dev that can be opened.
std::string openable_devices() {
  std::set<std::string> opened;
  for (const auto& entry : std::filesystem::directory_iterator("/dev")) {
    struct stat status {};
    const std::string path = entry.path().string();
    const bool is_node = ::lstat(path.c_str(), &status) == 0 && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode));
    const int fd = is_node ? ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
    if (fd >= 0) {
      ::close(fd);
      opened.insert(entry.path().filename().string());
    }
  }
  std::string names;
  for (const std::string& name : opened) {
    names += name + " ";
  }
  return names;
}

/// By opening it for reading, or without any access.
bool can_empty(const std::string& path) {
  for (const int access : {O_RDONLY, O_ACCMODE}) {
    if (const int fd = ::open(path.c_str(), access | O_TRUNC | O_CLOEXEC); fd >= 0) {
      ::close(fd);
      return true;
    }
  }
  return false;
}

bool can_write(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  return fd >= 0 && ::write(fd, "x", 1) == 1 && ::close(fd) == 0;
}

TEST(Confinement, FilesAreHistoryAloneAndNoDevice) {
  const tests::TemporaryTree tree;
  tree.file("elsewhere/file", "what was there");
  const std::string history = tree.path("history");
  ASSERT_NE(openable_devices().find("zero "), std::string::npos);
  EXPECT_EQ(in_child([&] {
              if (const auto confined = confine(history, {}); !confined) {
                return confined.error().message;
              }
              std::ostringstream found;
              found << openable_devices();
              const bool kept = can_write(history + "/a") && can_write(history + "/a") &&
                                ::rename((history + "/a").c_str(), (history + "/b").c_str()) == 0 &&
                                ::unlink((history + "/b").c_str()) == 0;
              found << (kept ? "history " : "no history ");
              std::ifstream other(tree.path("elsewhere/file"));
              found << (other ? "reads " : "cannot read ");
              const bool wrote = can_empty(tree.path("elsewhere/file")) || can_write(tree.path("elsewhere/file")) ||
                                 can_write(tree.path("elsewhere/new")) || can_write("/proc/self/comm") ||
                                 ::unlink(tree.path("elsewhere/file").c_str()) == 0 ||
                                 ::mkdir(tree.path("elsewhere/directory").c_str(), 0700) == 0;
              found << (wrote ? "writes elsewhere" : "and no more");
              return found.str();
            }),
            "null urandom history reads and no more");
}

TEST(Confinement, FilesInTheRootItselfAreRead) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "another root takes root";
  }
  const tests::TemporaryTree tree;
  tree.file("web.yaml", "read again at a reload");
  tree.file("history/file", "");
  EXPECT_EQ(in_child([&] {
              if (::chroot(tree.path("").c_str()) != 0 || ::chdir("/") != 0 ||
                  ::mknod("/null", S_IFCHR | 0666, makedev(1, 3)) != 0) {
                return std::string("no root of our own");
              }
              if (const auto confined = confine("/history", {}); !confined) {
                return confined.error().message;
              }
              return std::string(std::ifstream("/web.yaml") ? "reads" : "cannot read") +
                     (std::ifstream("/null") ? ", devices, too" : "");
            }),
            "reads");
}

#ifndef __SANITIZE_THREAD__  // defined by g++, which builds `thread`: its runtime has a thread of its own, from before
/// The values of a field of /proc/self/task/*/status over all threads.
std::set<std::string> of_all_threads(const std::string& field) {
  std::set<std::string> values;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind(field + ":\t", 0) == 0) {
        values.insert(line.substr(field.size() + 2));
      }
    }
  }
  return values;
}

TEST(Confinement, HoldsForThreadsThatComeLater) {
  EXPECT_EQ(in_child([] {
              if (const auto confined = confine("", {}); !confined) {
                return confined.error().message;
              }
              std::string wrong;
              std::thread([&] {
                for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
                  wrong += of_all_threads(set) == std::set<std::string>{"0000000000000000"} ? "" : set;
                }
                wrong += of_all_threads("NoNewPrivs") == std::set<std::string>{"1"} ? "" : " no_new_privs";
                wrong += of_all_threads("Seccomp") == std::set<std::string>{"2"} ? "" : " seccomp";
              }).join();
              return wrong;
            }),
            "");
}
#endif

const std::vector<Attempt> kOfNoReader = {
    {"openat, to write", [] { return open_for(O_WRONLY); }},
    {"openat, to read and write", [] { return open_for(O_RDWR); }},
    {"openat, to make", [] { return open_for(O_RDONLY | O_CREAT); }},
    {"openat, to empty", [] { return open_for(O_RDONLY | O_TRUNC); }},
    {"openat, to append", [] { return open_for(O_RDONLY | O_APPEND); }},
    {"openat, with neither right", [] { return open_for(O_ACCMODE); }},
    {"openat, with high bits",
     [] { return ::syscall(SYS_openat, AT_FDCWD, "/nowhere/x", 0x100000000UL | O_WRONLY, 0600); }},
    {"openat2", [] { return ::syscall(SYS_openat2, AT_FDCWD, "/nowhere/x", nullptr, 0); }},
#ifdef SYS_open
    {"open", [] { return ::syscall(SYS_open, "/nowhere/x", O_WRONLY, 0); }},
    {"creat", [] { return ::syscall(SYS_creat, "/nowhere/x", 0600); }},
#endif
    {"truncate", [] { return static_cast<long>(::truncate("/nowhere/x", 0)); }},
    {"chmod", [] { return static_cast<long>(::chmod("/nowhere/x", 0)); }},
    {"limits of others", [] { return ::syscall(SYS_prlimit64, kNobody, RLIMIT_NOFILE, nullptr, nullptr); }},
    {"execve", [] { return ::syscall(SYS_execve, "/nowhere", nullptr, nullptr); }},
    {"bpf", [] { return ::syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, nullptr, 0); }},
    {"mount", [] { return ::syscall(SYS_mount, nullptr, "/nowhere", nullptr, 0, nullptr); }},
    {"socket", [] { return static_cast<long>(::socket(AF_UNIX, SOCK_STREAM, 0)); }},
    {"connect", [] { return static_cast<long>(::connect(-1, nullptr, 0)); }},
    {"unlink", [] { return static_cast<long>(::unlink("/nowhere/x")); }},
    {"pwrite64", [] { return static_cast<long>(::pwrite(-1, "", 0, 0)); }},
    {"ioctl, an I/O command of NVMe", [] { return static_cast<long>(::ioctl(-1, NVME_IOCTL_SUBMIT_IO, nullptr)); }},
    {"ioctl, a reset of NVMe", [] { return static_cast<long>(::ioctl(-1, NVME_IOCTL_RESET, nullptr)); }},
    {"ioctl, any other", [] { return static_cast<long>(::ioctl(-1, FIONREAD, nullptr)); }},
};

TEST(ReaderCalls, RefusesAllThatIsNotReading) { expect_refused(nvme_reader::allow_only_reader_calls, kOfNoReader); }

TEST(ReaderCalls, MakesNoNamespaces) {
  expect_refused(nvme_reader::allow_only_reader_calls, new_namespaces());
  EXPECT_EQ(clone3_behind(nvme_reader::allow_only_reader_calls), std::strerror(ENOSYS));
}

util::Result<void> become_a_worker() {
  const auto refused = nvme_reader::allow_only_reader_calls();
  return refused ? nvme_reader::refuse_supervisor_calls() : refused;
}

const std::vector<Attempt> kOfNoWorker = {
    {"a process", [] { return ::syscall(SYS_clone, CLONE_SIGHAND | SIGCHLD, 0, 0, 0, 0); }},  // fails: no CLONE_VM
    {"kill", [] { return static_cast<long>(::kill(kNobody, 0)); }},
    {"tgkill", [] { return ::syscall(SYS_tgkill, kNobody, kNobody, 0); }},
    {"pidfd_open", [] { return ::syscall(SYS_pidfd_open, -1, 0); }},
    {"accept4", [] { return static_cast<long>(::accept4(-1, nullptr, nullptr, 0)); }},
    {"seccomp", [] { return ::syscall(SYS_seccomp, -1, 0, nullptr); }},
};

TEST(ReaderCalls, AWorkerHasNoProcessesBesideIt) { expect_refused(become_a_worker, kOfNoWorker); }

#ifndef SSDPULSE_SANITIZED  // whose threads make calls of their own
TEST(ReaderCalls, AWorkerHasThreadsAndCanAbort) {
  EXPECT_EQ(in_child([] {
              if (const auto refused = become_a_worker(); !refused) {
                return refused.error().message;
              }
              std::string said;
              std::thread([&] { said = std::ifstream("/proc/self/status") ? "reads" : std::strerror(errno); }).join();
              std::signal(SIGABRT, SIG_IGN);
              return said + (::raise(SIGABRT) == 0 ? ", signals itself" : std::strerror(errno));
            }),
            "reads, signals itself");
}

TEST(ReaderCalls, LeavesAdminCommandsThreadsAndWorkers) {
  EXPECT_EQ(in_child([] {
              if (const auto refused = nvme_reader::allow_only_reader_calls(); !refused) {
                return refused.error().message;
              }
              std::string wrong;
              std::thread([&] {
                if (::ioctl(-1, NVME_IOCTL_ADMIN_CMD, nullptr) == 0 || errno != EBADF) {
                  wrong += "admin command; ";
                }
                if (!std::ifstream("/proc/self/status")) {
                  wrong += "a file; ";
                }
              }).join();
              const pid_t child = ::fork();
              if (child == 0) {
                _exit(7);
              }
              int status = 0;
              if (child < 0 || ::waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) {
                wrong += "a worker; ";
              }
              return wrong;
            }),
            "");
}
#endif

}  // namespace
}  // namespace ssdpulse::confinement
