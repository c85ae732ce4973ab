// SPDX-License-Identifier: Apache-2.0
#include "daemon/cli/own_daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/base/child_process.h"

namespace ssdpulse::cli {
namespace {

using util::UniqueFd;

// The child's descriptors: the first that systemd would pass, and the next.
constexpr int kListener = 3;
constexpr int kConfiguration = 4;
constexpr int kAboveThose = 10;

constexpr int kBacklog = 64;
constexpr std::chrono::seconds kShutdownGrace{2};  // a daemon stops within one second unless held up
constexpr std::chrono::seconds kLastWords{10};     // from closing its sockets to its end: BPF programs are unloaded

struct HiddenSocket {
  UniqueFd listener;
  UniqueFd file;
};

util::Result<sockaddr_un> socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return util::fail_errno(path, ENAMETOOLONG);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

std::string path_of(const UniqueFd& fd) { return "/proc/self/fd/" + std::to_string(fd.get()); }

/// Listens in `directory`, which only root may enter, under a name that is gone when this returns: whoever holds `file`
/// can still connect. Anybody could connect to an abstract socket.
util::Result<HiddenSocket> listen_in(const std::string& directory) {
  const std::string path = directory + "/socket";
  const auto address = socket_address(path);
  if (!address) {
    return tl::make_unexpected(address.error());
  }
  HiddenSocket hidden{UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), UniqueFd()};
  if (!hidden.listener.valid() ||
      ::bind(hidden.listener.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0) {
    return util::fail_errno("cannot create a socket in " + directory);
  }
  hidden.file.reset(::open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  const int error = errno;
  ::unlink(path.c_str());
  if (!hidden.file.valid()) {
    return util::fail_errno("cannot open a socket in " + directory, error);
  }
  if (::listen(hidden.listener.get(), kBacklog) != 0) {
    return util::fail_errno("cannot listen on a socket");
  }
  return hidden;
}

util::Result<HiddenSocket> hidden_socket() {
  for (std::string directory : {"/run/ssdpulse-top.XXXXXX", "/tmp/ssdpulse-top.XXXXXX"}) {
    if (::mkdtemp(directory.data()) != nullptr) {
      auto hidden = listen_in(directory);
      ::rmdir(directory.c_str());
      return hidden;
    }
  }
  return util::fail_errno("cannot create a directory in /run or /tmp");
}

util::Result<UniqueFd> file_in_memory(const char* name, std::string_view text) {
  UniqueFd file(::memfd_create(name, MFD_CLOEXEC));
  if (!file.valid()) {
    return util::fail_errno("cannot create a file in memory");
  }
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0) {
      return util::fail_errno("cannot write to a file in memory");
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return file;
}

/// Moves a descriptor above the numbers that the child's descriptors get.
util::Result<UniqueFd> above_those(UniqueFd fd) {
  UniqueFd above(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kAboveThose));
  if (!above.valid()) {
    return util::fail_errno("cannot give a daemon its descriptors");
  }
  return above;
}

/// Ours, except for what a service manager passed to us: that does not concern the child.
std::vector<std::string> environment_of_child() {
  std::vector<std::string> all{"LISTEN_FDS=1", "LISTEN_FDNAMES=web"};
  constexpr auto kOfManagers =
      std::to_array<std::string_view>({"LISTEN_", "NOTIFY_SOCKET=", "WATCHDOG_", "JOURNAL_STREAM="});
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view variable(*one);
    if (std::none_of(kOfManagers.begin(), kOfManagers.end(),
                     [&](std::string_view begin) { return variable.substr(0, begin.size()) == begin; })) {
      all.emplace_back(variable);
    }
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// The child, with only these descriptors.
util::Result<pid_t> spawn(const UniqueFd& listener, const UniqueFd& configuration, const UniqueFd& log) {
  util::SpawnSettings settings;
  int error = 0;
  const auto note = [&](int one) { error = error == 0 ? one : error; };
  note(::posix_spawn_file_actions_addopen(&settings.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0));
  note(::posix_spawn_file_actions_adddup2(&settings.actions, log.get(), STDOUT_FILENO));
  note(::posix_spawn_file_actions_adddup2(&settings.actions, log.get(), STDERR_FILENO));
  note(::posix_spawn_file_actions_adddup2(&settings.actions, listener.get(), kListener));
  note(::posix_spawn_file_actions_adddup2(&settings.actions, configuration.get(), kConfiguration));
  note(::posix_spawn_file_actions_addclosefrom_np(&settings.actions, kConfiguration + 1));
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  note(::posix_spawnattr_setsigmask(&settings.attributes, &none));
  note(::posix_spawnattr_setsigdefault(&settings.attributes, &all));
  note(::posix_spawnattr_setflags(&settings.attributes,
                                  POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID));
  std::vector<std::string> arguments{"ssdpulse",
                                     "run",
                                     "--config",
                                     "/proc/self/fd/" + std::to_string(kConfiguration),
                                     "--web.systemd-socket",
                                     "--log.level",
                                     "error",
                                     "--ends-with",
                                     std::to_string(::getpid())};
  std::vector<std::string> environment = environment_of_child();
  pid_t child = 0;
  if (error == 0) {
    error = ::posix_spawn(&child, "/proc/self/exe", &settings.actions, &settings.attributes,
                          pointers_to(arguments).data(), pointers_to(environment).data());
  }
  if (error != 0) {
    return util::fail_errno("cannot start a daemon to measure with", error);
  }
  return child;
}

/// A connection that asks whether the daemon is healthy. It waits in the backlog until the daemon serves, which is when
/// it measures, and breaks if the daemon ends before that.
util::Result<UniqueFd> first_question(const UniqueFd& socket_file) {
  constexpr std::string_view kQuestion = "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  const auto address = socket_address(path_of(socket_file));
  UniqueFd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!address || !connection.valid() ||
      ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) != 0 ||
      ::send(connection.get(), kQuestion.data(), kQuestion.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(kQuestion.size())) {
    return util::fail_errno("cannot connect to a socket of this process");
  }
  return connection;
}

/// The last line of its log, without time and level.
std::string last_log_line(const UniqueFd& log) {
  constexpr std::size_t kMaxLineBytes = 4096;
  constexpr std::string_view kLevel = " error ";
  std::string text(kMaxLineBytes, '\0');
  struct stat status {};
  ::fstat(log.get(), &status);
  const ssize_t got = ::pread(log.get(), text.data(), text.size(),
                              std::max<off_t>(0, status.st_size - static_cast<off_t>(kMaxLineBytes)));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  text.erase(text.find_last_not_of('\n') + 1);
  text.erase(0, text.rfind('\n') + 1);
  if (const auto level = text.find(kLevel); level != std::string::npos) {
    text.erase(0, level + kLevel.size());
  }
  return text;
}

}  // namespace

OwnDaemon::OwnDaemon(pid_t child, UniqueFd socket_file, UniqueFd log, UniqueFd first)
    : child_(child), socket_file_(std::move(socket_file)), log_(std::move(log)), first_(std::move(first)) {}

util::Result<std::unique_ptr<OwnDaemon>> OwnDaemon::start(config::Config wanted) {
  // Whoever started us may have left it ignored: then nobody can wait for a child, and its pid is soon reused.
  ::signal(SIGCHLD, SIG_DFL);
  wanted.web = config::Config().web;
  wanted.history.directory.clear();
  wanted.nvme.reader_socket.clear();   // of a service, which may be off like the daemon
  wanted.flash_model.enabled = false;  // it reports nothing for hours
  auto socket = hidden_socket();
  auto configuration = file_in_memory("ssdpulse.yaml", config::print(wanted));
  auto log = file_in_memory("log", "");
  for (const auto* file : {&configuration, &log}) {
    if (!*file) {
      return tl::make_unexpected(file->error());
    }
  }
  if (!socket) {
    return tl::make_unexpected(socket.error());
  }
  // Our copy is closed here: once the child has ended, nobody listens, and whoever waits for an answer notices.
  auto listener = above_those(std::move(socket->listener));
  auto for_child = above_those(std::move(*configuration));
  auto written = above_those(std::move(*log));
  for (const auto* descriptor : {&listener, &for_child, &written}) {
    if (!*descriptor) {
      return tl::make_unexpected(descriptor->error());
    }
  }
  auto first = first_question(socket->file);
  if (!first) {
    return tl::make_unexpected(first.error());
  }
  const auto child = spawn(*listener, *for_child, *written);
  if (!child) {
    return tl::make_unexpected(child.error());
  }
  return std::unique_ptr<OwnDaemon>(
      new OwnDaemon(*child, std::move(socket->file), std::move(*written), std::move(*first)));
}

OwnDaemon::~OwnDaemon() {
  const auto deadline = std::chrono::steady_clock::now() + kShutdownGrace;
  if (!ending()) {
    ::kill(child_, SIGTERM);
  }
  while (!ending() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (!ended_) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
}

std::string OwnDaemon::address() const { return "unix:" + path_of(socket_file_); }

util::Result<bool> OwnDaemon::answers_within(std::chrono::milliseconds timeout) {
  if (answered_) {
    return true;
  }
  pollfd answer{first_.get(), POLLIN, 0};
  if (::poll(&answer, 1, static_cast<int>(timeout.count())) <= 0) {
    return false;
  }
  char byte = 0;
  answered_ = ::recv(first_.get(), &byte, 1, 0) == 1;
  if (answered_) {
    first_.reset();
    return true;
  }
  // Its sockets close a moment before it can be waited for.
  const auto latest = std::chrono::steady_clock::now() + kLastWords;
  std::optional<std::string> reason;
  while (!(reason = ending()) && std::chrono::steady_clock::now() < latest) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return util::fail(reason.value_or("it neither serves nor exits"));
}

std::optional<std::string> OwnDaemon::ending() {
  int status = 0;
  const pid_t waited = ended_ ? 0 : ::waitpid(child_, &status, WNOHANG);
  if (waited == child_ || (waited < 0 && errno == ECHILD)) {
    ended_ = true;  // also if somebody else has waited for it: its pid may be another's now
    ending_ = last_log_line(log_);
    if (ending_.empty()) {
      ending_ = waited < 0            ? "it is gone"
                : WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                      : "exit status " + std::to_string(WEXITSTATUS(status));
    }
  }
  return ended_ ? std::optional(ending_) : std::nullopt;
}

}  // namespace ssdpulse::cli
