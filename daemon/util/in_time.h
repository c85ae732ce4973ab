// SPDX-License-Identifier: Apache-2.0
// For commands, which must end: questions that the kernel may never answer, such as any about a file system whose
// server is gone. Not for the daemon, which has threads that may wait.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "daemon/util/result.h"

namespace ssdpulse::util {

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
