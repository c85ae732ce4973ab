// SPDX-License-Identifier: Apache-2.0
// Workers: a few threads and a queue, which render pages while the server's own thread keeps answering. The caller
// bounds the queue.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ssdpulse::http {

class Workers {
 public:
  /// `name`: of the threads, at most 15 letters.
  Workers(unsigned threads, const char* name);
  ~Workers();

  /// Jobs must not throw. Having no memory for a queue entry ends the process.
  void submit(std::function<void()> job) noexcept;

  /// Returns when all jobs submitted before have run. No submit() afterwards.
  void finish();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool finishing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace ssdpulse::http
