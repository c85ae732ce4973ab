// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/result.h"

namespace ssdpulse::util {
namespace {

/// Nobody may wait for this process because it holds a pipe or terminal open.
void keep_only(int fd) {
  for (int one = 0; one < fd; ++one) {
    ::close(one);
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

std::string of_main_thread(const char* file) {
  return read_file("/proc/self/task/" + std::to_string(::getpid()) + "/" + file, 4096).value_or("");
}

/// The main thread reads or writes a standard stream: somebody types, or turns the pages of a pager.
bool waits_for_people() {
  const std::string call = of_main_thread("syscall");  // NUMBER 0xARGUMENT ...
  const std::size_t blank = call.find(' ');
  if (blank == std::string::npos || call.find_first_not_of("0123456789") != blank) {
    return false;
  }
  const long number = std::strtol(call.c_str(), nullptr, 10);
  const std::string fd = call.substr(blank + 1, call.find(' ', blank + 1) - blank - 1);
  const bool standard = fd == "0x0" || fd == "0x1" || fd == "0x2";
  struct stat status {};
  return standard && (number == SYS_read || number == SYS_write || number == SYS_writev) &&
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
    if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      char first = 0;
      const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
      return file.valid() && ::read(file.get(), &first, 1) == 1 ? std::string(1, first) : std::string();
    }
    return std::string();
  };
  const auto answers = in_time(read_first_byte);
  return answers ? Result<void>()
                 : fail(path + ": its file system " + answers.error().message, answers.error().error_number);
}

TimeLimit::TimeLimit(std::string command, std::chrono::seconds limit)
    : thread_([this, command = std::move(command), limit] {
        std::unique_lock lock(mutex_);
        bool done = wake_.wait_for(lock, limit, [this] { return done_; });
        while (!done && waits_for_people()) {  // who turns a page has the whole time again for the next one
          done = wake_.wait_for(lock, limit, [this] { return done_; });
        }
        if (done) {
          return;
        }
        const std::string where = of_main_thread("wchan");
        const std::string words = "ssdpulse " + command + " gave up after " + std::to_string(limit.count()) +
                                  " s: something that it asked does not answer" +
                                  (where.empty() || where == "0" ? "" : " (the kernel is in " + where + ")") + "\n";
        [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, words.data(), words.size());
        ::_exit(static_cast<int>(ExitCode::failure));
      }) {}

TimeLimit::~TimeLimit() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

}  // namespace ssdpulse::util
