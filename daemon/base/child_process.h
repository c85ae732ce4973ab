// SPDX-License-Identifier: Apache-2.0
// Child processes, and limits on what may never end. SpawnSettings: what posix_spawn() is to do in the child.
// in_time() and TimeLimit are for commands, which must end although they depend on what the kernel may never answer,
// such as any question about a file system whose server is gone. Not for the daemon, which has threads that may wait.
#pragma once

#include <spawn.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/result.h"

namespace ssdpulse::util {

/// For one call. Owns both objects; holds no descriptor.
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

/// A descriptor that is readable once all threads of the child have ended. Invalid on failure, with errno set. Called
/// by number: before version 2.37, the C library's header for pidfd_open() cannot be used in C++.
inline UniqueFd process_descriptor(pid_t child) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
}

inline constexpr std::chrono::milliseconds kPerQuestion{2000};

/// What `question` returns. It is called in a process of its own, without any of this one's files, because a thread
/// that waits for a file system keeps its process from ending, and even a kill may not reach it. An error: it was not
/// answered within `limit` (ETIMEDOUT; that process is then left behind), the process could not be started, or it
/// threw.
Result<std::string> in_time(const std::function<std::string()>& question,
                            std::chrono::milliseconds limit = kPerQuestion);

/// Waits for a stop request, but no longer than `limit`. Whether there is one.
bool stops_within(std::chrono::milliseconds limit, const std::stop_token& stop);

/// Whether the file system of a file or directory answers at all; also if there is no such file.
Result<void> file_answers(const std::string& path);

/// Ends the process with the status of a failure, and a line on stderr, if it exists for longer than `limit`, not
/// counting what standard input and output take.
class TimeLimit {
 public:
  TimeLimit(std::string command, std::chrono::seconds limit);

 private:
  std::jthread thread_;
};

}  // namespace ssdpulse::util
