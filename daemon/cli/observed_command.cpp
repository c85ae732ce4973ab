// SPDX-License-Identifier: Apache-2.0
#include "daemon/cli/observed_command.h"

#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "daemon/base/child_process.h"
#include "daemon/base/outside_text.h"

namespace ssdpulse::cli {

ObservedCommand::ObservedCommand() {
  ::signal(SIGCHLD, SIG_DFL);  // whoever started us may have left it ignored: then nobody can wait for a child
  sigemptyset(&waiting_);
  for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) {
    sigaddset(&waiting_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &waiting_, &before_);
}

ObservedCommand::~ObservedCommand() {
  constexpr timespec kNow{};
  while (::sigtimedwait(&waiting_, nullptr, &kNow) > 0) {
    // One that came while the report was made must not take the place of the command's status.
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<siginfo_t> ObservedCommand::next_signal() {
  constexpr timespec kStep{.tv_sec = 0, .tv_nsec = 200'000'000};
  siginfo_t info{};
  return ::sigtimedwait(&waiting_, &info, &kStep) > 0 ? std::optional(info) : std::nullopt;
}

util::Result<ObservedCommand::Ran> ObservedCommand::run(std::vector<std::string> command, bool quiet) {
  util::SpawnSettings settings;
  ::posix_spawnattr_setsigmask(&settings.attributes, &before_);
  ::posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETSIGMASK);
  if (quiet) {
    ::posix_spawn_file_actions_adddup2(&settings.actions, STDERR_FILENO, STDOUT_FILENO);
  }
  std::vector<char*> arguments;
  for (std::string& argument : command) {
    arguments.push_back(argument.data());
  }
  arguments.push_back(nullptr);
  Ran ran;
  ran.began = std::chrono::system_clock::now();
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], &settings.actions, &settings.attributes, arguments.data(), environ);
  if (error != 0) {
    return util::fail("cannot run " + util::for_terminal(command[0]) + ": " + std::strerror(error),
                      error == ENOENT ? kNotFound : kNotExecutable);
  }
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    const auto signal = next_signal();
    if (signal && signal->si_signo != SIGCHLD &&
        signal->si_code != SI_KERNEL) {  // a terminal's reaches its whole group
      ::kill(child, signal->si_signo);
    }
  }
  ran.ended = std::chrono::system_clock::now();
  ran.status = WIFSIGNALED(status) ? kKilledBy + WTERMSIG(status) : WEXITSTATUS(status);
  return ran;
}

std::optional<int> ObservedCommand::wait_until(const std::function<bool()>& done) {
  while (!done()) {
    const auto signal = next_signal();
    if (signal && signal->si_signo != SIGCHLD && signal->si_signo != SIGUSR1 && signal->si_signo != SIGUSR2) {
      return signal->si_signo;
    }
  }
  return std::nullopt;
}

}  // namespace ssdpulse::cli
