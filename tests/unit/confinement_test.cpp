// SPDX-License-Identifier: Apache-2.0
// Can a process that confined itself still do what it gave up? Children of the test confine themselves and try. Each
// refused call is made in a way that fails otherwise without the filter, so that EPERM can only come from it.
#include "daemon/runtime/confinement.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include "daemon/runtime/file_access.h"
#include "daemon/sources/nvme/reader_calls.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::runtime {
namespace {

/// What `work` says in a process of its own; "died" if it does.
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

const Attempt kOfNoDaemon[] = {
    {"bpf map create", [] { return ::syscall(SYS_bpf, BPF_MAP_CREATE, nullptr, 0); }},
    {"bpf program load", [] { return ::syscall(SYS_bpf, BPF_PROG_LOAD, nullptr, 0); }},
    {"bpf map update", [] { return ::syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, nullptr, 0); }},
    {"bpf link create", [] { return ::syscall(SYS_bpf, BPF_LINK_CREATE, nullptr, 0); }},
    {"bpf, a command with high bits",
     [] { return ::syscall(SYS_bpf, 0x100000000UL | BPF_OBJ_GET_INFO_BY_FD, nullptr, 0); }},
    {"execve", [] { return ::syscall(SYS_execve, "/nowhere", nullptr, nullptr); }},
    {"execveat", [] { return ::syscall(SYS_execveat, -1, "nowhere", nullptr, nullptr, 0); }},
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
};

TEST(Confinement, RefusesWhatNoDaemonNeeds) {
  for (const Attempt& attempt : kOfNoDaemon) {
    if (::geteuid() == 0) {
      EXPECT_NE(error_of(attempt.call()), EPERM) << attempt.name << ": refused anyhow, so this shows nothing";
    }
    EXPECT_EQ(in_child([&] {
                if (const auto refused = refuse_calls_of_others(); !refused) {
                  return refused.error().message;
                }
                return std::string(error_of(attempt.call()) == EPERM ? "refused" : std::strerror(errno));
              }),
              "refused")
        << attempt.name;
  }
}

TEST(Confinement, LeavesWhatTheDaemonNeeds) {
  EXPECT_EQ(in_child([] {
              if (const auto refused = refuse_calls_of_others(); !refused) {
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
              return wrong.str();
            }),
            "");
}

/// Device nodes below /dev that open, by name.
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
              if (const auto confined = confine(history); !confined) {
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
              const bool wrote = can_write(tree.path("elsewhere/file")) || can_write(tree.path("elsewhere/new")) ||
                                 can_write("/proc/self/comm") || ::unlink(tree.path("elsewhere/file").c_str()) == 0 ||
                                 ::mkdir(tree.path("elsewhere/directory").c_str(), 0700) == 0;
              found << (wrote ? "writes elsewhere" : "and no more");
              return found.str();
            }),
            "null urandom history reads and no more");
}

/// The values that all threads have of a field of /proc/self/task/*/status.
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
              if (const auto confined = confine(""); !confined) {
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

const Attempt kOfNoReader[] = {
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

TEST(ReaderCalls, RefusesAllThatIsNotReading) {
  for (const Attempt& attempt : kOfNoReader) {
    EXPECT_NE(error_of(attempt.call()), EPERM) << attempt.name << ": refused anyhow, so this shows nothing";
    EXPECT_EQ(in_child([&] {
                if (const auto refused = nvme::refuse_calls_but_the_readers(); !refused) {
                  return refused.error().message;
                }
                return std::string(error_of(attempt.call()) == EPERM ? "refused" : std::strerror(errno));
              }),
              "refused")
        << attempt.name;
  }
}

TEST(ReaderCalls, LeavesAdminCommandsThreadsAndWorkers) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's threads make calls of their own";
#endif
  EXPECT_EQ(in_child([] {
              if (const auto refused = nvme::refuse_calls_but_the_readers(); !refused) {
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

}  // namespace
}  // namespace ssdpulse::runtime
