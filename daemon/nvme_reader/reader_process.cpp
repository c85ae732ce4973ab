// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme_reader/reader_process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nvme_ioctl.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <vector>

#include "daemon/base/child_process.h"
#include "daemon/base/confinement.h"
#include "daemon/base/file_descriptor.h"
#include "daemon/base/log.h"
#include "daemon/base/system_calls.h"
#include "daemon/nvme_reader/drive_commands.h"
#include "daemon/nvme_reader/reader_protocol.h"
#include "daemon/nvme_reader/reader_worker.h"

namespace ssdpulse::nvme_reader {

namespace {

using util::SystemCall;
using When = SystemCall::When;

/// Opening a file without these flags only allows reading. O_TMPFILE needs one of them.
constexpr std::uint64_t kWriting = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;

/// System calls that the reader and its supervisor make, and that the C library makes for them, in Debian 12 and 13.
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

util::Result<void> allow_only_reader_calls() { return util::allow_only_system_calls(kAllowed); }

util::Result<void> refuse_supervisor_calls() {
  std::vector<SystemCall> refused(std::begin(kOfSupervisorAlone), std::end(kOfSupervisorAlone));
  // abort() sends the process a signal.
  refused.push_back({"tgkill", When::argument_is_not, 0, static_cast<std::uint64_t>(::getpid())});
  return util::refuse_system_calls(refused);
}

namespace {

constexpr std::chrono::seconds kRestartPause{3};

bool is_message_socket(int socket) {
  int type = 0;
  int domain = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET &&
         ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

bool is_listening(int socket) {
  int listening = 0;
  socklen_t size = sizeof listening;
  return ::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0;
}

/// Log pages need CAP_SYS_ADMIN on every kernel; /dev/nvmeN is root's, so others need a capability to open it.
std::vector<int> wanted_capabilities() {
  return ::geteuid() == 0 ? std::vector{CAP_SYS_ADMIN} : std::vector{CAP_SYS_ADMIN, CAP_DAC_READ_SEARCH};
}

/// The standard streams and the socket stay open.
void close_others(int socket) {
  const auto kept = static_cast<unsigned>(socket);
  ::close_range(kept + 1, UINT_MAX, 0);
  if (kept > 3) {
    ::close_range(3, kept - 1, 0);
  }
}

log::Field how_it_ended(int status) {
  return WIFSIGNALED(status) ? log::field("signal", WTERMSIG(status)) : log::field("exit_code", WEXITSTATUS(status));
}

/// Returns the process, or -1. The child does not return.
pid_t start(const std::function<void()>& work) {
  const pid_t supervisor = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) {
    return child;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() == supervisor) {
    work();
  }
  // Not exit(): a thread may sit in a command for minutes, and nothing here needs tidying up.
  ::_exit(0);
}

/// The peer of a connection, as the kernel knows it.
std::array<log::Field, 2> described(int client) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return {log::field("pid", "unknown")};
  }
  return {log::field("pid", peer.pid), log::field("uid", peer.uid)};
}

/// A second client learns at once that it is turned away.
void turn_away(int listener) {
  static log::Limiter limiter{std::chrono::minutes(1)};
  const util::UniqueFd client(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (const auto admitted = limiter.admit("client"); client.valid() && admitted) {
    const auto [pid, uid] = described(client.get());
    log::warning("NVMe reader serves one client at a time: turned away", pid, uid, log::field("suppressed", *admitted));
  }
}

/// Waits until the worker has ended, or the daemon: then returns false.
bool watch(int socket, const util::UniqueFd& worker, int listener) {
  std::array<pollfd, 3> events{{{socket, POLLRDHUP, 0}, {worker.get(), POLLIN, 0}, {listener, POLLIN, 0}}};
  while (true) {
    if (::poll(events.data(), events.size(), -1) < 0) {
      continue;  // EINTR
    }
    if (events[0].revents != 0 || events[1].revents != 0) {
      return events[0].revents == 0;
    }
    turn_away(listener);
  }
}

bool sleeps_undisturbed(int socket, std::chrono::milliseconds pause) {
  pollfd end{socket, POLLRDHUP, 0};
  return ::poll(&end, 1, static_cast<int>(pause.count())) == 0;
}

}  // namespace

bool supervise(int socket, const std::function<void()>& work, std::chrono::milliseconds pause, int listener) {
  while (true) {
    const pid_t pid = start(work);
    if (pid < 0) {
      log::warning("cannot start the NVMe reader, trying again: {}", std::strerror(errno));
      if (!sleeps_undisturbed(socket, pause)) {
        return true;
      }
      continue;
    }
    const util::UniqueFd worker = util::process_descriptor(pid);
    if (!worker.valid()) {
      log::error("cannot watch the NVMe reader: {}", std::strerror(errno));
    }
    if (!worker.valid() || !watch(socket, worker, listener)) {
      // Not waited for: it may be in a command that nothing can interrupt.
      ::kill(pid, SIGKILL);
      return worker.valid();
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (!sleeps_undisturbed(socket, pause)) {
      return true;
    }
    log::warning("NVMe reader died, restarting it", how_it_ended(status));
    // The requests that the dead worker had taken are lost, and only the daemon knows which they were.
    Response notice;
    notice.result = -ECONNRESET;
    if (send_message(socket, notice, 0) != 0) {
      return true;
    }
  }
}

void serve_clients(int listener, const std::function<void(int)>& work, std::chrono::milliseconds pause) {
  log::Limiter limiter{std::chrono::minutes(1)};  // a client that keeps reconnecting would fill the log
  while (true) {
    const util::UniqueFd client(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) {
        continue;
      }
      log::error("NVMe reader cannot accept a client: {}", std::strerror(errno));
      return;
    }
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      // Workers of earlier clients that have ended since.
    }
    const auto admitted = limiter.admit("client");
    if (admitted) {
      const auto [pid, uid] = described(client.get());
      log::info("NVMe reader has a client", pid, uid, log::field("suppressed", *admitted));
    }
    const auto worker = [&] {
      ::close(listener);
      work(client.get());
    };
    if (!supervise(client.get(), worker, pause, listener)) {
      return;
    }
    if (admitted) {
      log::info("NVMe reader's client disconnected");
    }
  }
}

util::ExitCode run_nvme_reader(int socket) {
  if (!is_message_socket(socket)) {
    std::fputs(
        "ssdpulse nvme-reader reads NVMe logs for `ssdpulse run`, which starts it, or asks the one that a service "
        "manager starts; it is of no use by itself\n",
        stderr);
    return util::ExitCode::usage;
  }
  const bool is_service = is_listening(socket);
  log::set_up("info", log::InJournal::lines);
  // exec named us after the link that it followed.
  ::prctl(PR_SET_NAME, "nvme-reader", 0, 0, 0);
  // NVMe over TCP raises SIGPIPE in the thread that sends a command while the connection breaks.
  std::signal(SIGPIPE, SIG_IGN);
  if (!is_service) {
    // Terminals and service managers signal every process; we exit when the daemon is gone.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      std::signal(signal, SIG_IGN);
    }
  }
  close_others(socket);
  CommandBudget* budget = CommandBudget::shared();
  if (budget == nullptr) {
    log::error("no memory for the limit of commands: {}", std::strerror(errno));
    return util::ExitCode::failure;
  }
  auto confined = confinement::keep_capabilities(wanted_capabilities());
  if (confined) {
    confined = allow_only_reader_calls();
  }
  if (!confined) {
    log::error("{}", confined.error().message);
    return util::ExitCode::failure;
  }
  const auto work = [budget](int client) {
    if (const auto worker_confined = refuse_supervisor_calls(); !worker_confined) {
      log::error("{}", worker_confined.error().message);
      ::_exit(static_cast<int>(util::ExitCode::failure));
    }
    LibnvmeCommands commands;
    ReaderWorker worker(client, commands, nvme::log_pages(), *budget);
    worker.serve();
    ::_exit(0);
  };
  if (is_service) {
    serve_clients(socket, work, kRestartPause);
    return util::ExitCode::failure;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // in case something else holds the socket open
  return supervise(
             socket, [&] { work(socket); }, kRestartPause)
             ? util::ExitCode::success
             : util::ExitCode::failure;
}

}  // namespace ssdpulse::nvme_reader
