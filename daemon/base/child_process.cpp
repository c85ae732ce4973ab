// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <utility>

namespace ssdpulse::util {
namespace {

/// Closes everything else: nobody may wait for this process because it holds a pipe or terminal open.
void keep_only(int fd) {
  for (int other = 0; other < fd; ++other) {
    ::close(other);
  }
#ifdef SYS_close_range
  ::syscall(SYS_close_range, static_cast<unsigned>(fd) + 1, ~0U, 0U);
#endif
}

[[noreturn]] void answer(const std::function<std::string()>& question, int out) {
  keep_only(out);
  try {
    const std::string text = question();
    for (std::size_t written = 0; written < text.size();) {
      const ssize_t more = ::write(out, text.data() + written, text.size() - written);
      if (more <= 0) {
        ::_exit(1);
      }
      written += static_cast<std::size_t>(more);
    }
    ::_exit(0);
  } catch (...) {
    ::_exit(1);
  }
}

/// All that is written until the other end is closed.
Result<std::string> read_until(int fd, std::chrono::steady_clock::time_point deadline) {
  std::string text;
  std::array<char, 4096> piece{};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd wait{fd, POLLIN, 0};
    const int ready = left > 0 ? ::poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    if (ready == 0) {
      return fail("does not answer", ETIMEDOUT);
    }
    const ssize_t got = ready > 0 ? ::read(fd, piece.data(), piece.size()) : -1;
    if (got < 0) {
      return fail_errno("its answer cannot be read");
    }
    if (got == 0) {
      return text;
    }
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

/// A file of the main thread in procfs; empty: it cannot be read.
std::string read_main_thread_file(const char* file) {
  return read_file("/proc/self/task/" + std::to_string(::getpid()) + "/" + file, 4096).value_or("");
}

/// The main thread reads or writes a standard stream: somebody types, or turns the pages of a pager.
bool waits_for_user() {
  const std::string call = read_main_thread_file("syscall");  // NUMBER 0xARGUMENT ...
  const std::size_t blank = call.find(' ');
  if (blank == std::string::npos || call.find_first_not_of("0123456789") != blank) {
    return false;
  }
  const long number = std::strtol(call.c_str(), nullptr, 10);
  const std::string fd = call.substr(blank + 1, call.find(' ', blank + 1) - blank - 1);
  const bool is_standard = fd == "0x0" || fd == "0x1" || fd == "0x2";
  struct stat status {};
  return is_standard && (number == SYS_read || number == SYS_write || number == SYS_writev) &&
         ::fstat(fd[2] - '0', &status) == 0 && !S_ISREG(status.st_mode);
}

}  // namespace

Result<std::string> in_time(const std::function<std::string()>& question, std::chrono::milliseconds limit) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail_errno("cannot be asked: no pipe");
  }
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  const pid_t child = ::fork();
  if (child < 0) {
    return fail_errno("cannot be asked: no process");
  }
  if (child == 0) {
    answer(question, out.get());
  }
  out.reset();
  auto text = read_until(in.get(), deadline);
  int status = 0;
  if (!text) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, WNOHANG);
    return text;
  }
  const pid_t ended = ::waitpid(child, &status, 0);
  const bool unknown = ended < 0 && errno == ECHILD;  // SIGCHLD is ignored, as some supervisors leave it
  return unknown || (ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0)
             ? text
             : fail("the process that asked it failed");
}

Result<void> file_answers(const std::string& path) {
  const auto read_first_byte = [&path] {
    struct stat status {};
    char first = 0;
    if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
      [[maybe_unused]] const ssize_t got = file.valid() ? ::read(file.get(), &first, 1) : 0;
    }
    return std::string(1, first);
  };
  const auto answers = in_time(read_first_byte);
  return answers ? Result<void>()
                 : fail(path + ": its file system " + answers.error().message, answers.error().error_number);
}

bool stops_within(std::chrono::milliseconds limit, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any stopped;
  stopped.wait_for(lock, stop, limit, [] { return false; });
  return stop.stop_requested();
}

TimeLimit::TimeLimit(std::string command, std::chrono::seconds limit)
    : thread_([command = std::move(command), limit](const std::stop_token& stop) {
        do {  // a user who turns a page has the whole time again for the next one
          if (stops_within(limit, stop)) {
            return;
          }
        } while (waits_for_user());
        const std::string where = read_main_thread_file("wchan");
        const std::string text = "ssdpulse " + command + " gave up after " + std::to_string(limit.count()) +
                                 " s: something that it asked does not answer" +
                                 (where.empty() || where == "0" ? "" : " (the kernel is in " + where + ")") + "\n";
        [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
        ::_exit(static_cast<int>(ExitCode::failure));
      }) {}

}  // namespace ssdpulse::util
