// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/stop_guard.h"

#include <unistd.h>

#include "daemon/util/exit_code.h"

namespace ssdpulse::service {

StopGuard::StopGuard(std::function<void()> report, std::chrono::milliseconds limit)
    : thread_([this, report = std::move(report), limit] {
        std::unique_lock lock(mutex_);
        if (!wake_.wait_for(lock, limit, [this] { return finished_; })) {
          report();
          // Not exit(): it would wait for what a disk keeps from ending.
          ::_exit(static_cast<int>(util::ExitCode::failure));
        }
      }) {}

StopGuard::~StopGuard() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

}  // namespace ssdpulse::service
