// SPDX-License-Identifier: Apache-2.0
// SpawnSettings: what posix_spawn() is to do in the child, for one call. Owns both objects; holds no descriptor.
#pragma once

#include <spawn.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/result.h"

namespace ssdpulse::util {

struct SpawnSettings {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};

  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
};

// process_descriptor(): a descriptor that shows when a child has ended.

/// Readable once all threads of the child have ended. Invalid on failure, with errno set. Called by number: before
/// version 2.37, the C library's header for pidfd_open() cannot be used in C++.
inline UniqueFd process_descriptor(pid_t child) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
}

// For commands, which must end: questions that the kernel may never answer, such as any about a file system whose
// server is gone. Not for the daemon, which has threads that may wait.

inline constexpr std::chrono::milliseconds kPerQuestion{2000};

/// What `question` returns. It is called in a process of its own, without any of this one's files, because a thread
/// that waits for a file system keeps its process from ending, and even a kill may not reach it. An error: it was not
/// answered within `limit` (ETIMEDOUT; that process is then left behind), it could not be asked, or it threw.
Result<std::string> in_time(const std::function<std::string()>& question,
                            std::chrono::milliseconds limit = kPerQuestion);

/// Whether the file system of a file or directory answers at all; also if there is no such file.
Result<void> file_answers(const std::string& path);

/// Ends the process with the status of a failure, and a line on stderr, if it exists for longer than `limit`, not
/// counting what standard input and output take.
class TimeLimit {
 public:
  TimeLimit(std::string command, std::chrono::seconds limit);
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
  ~TimeLimit();

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace ssdpulse::util
