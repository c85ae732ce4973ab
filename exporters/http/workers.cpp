// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/workers.h"

#include <pthread.h>

#include <utility>

namespace ssdpulse::http {

Workers::Workers(unsigned threads, const char* name) {
  for (unsigned i = 0; i < threads; ++i) {
    threads_.emplace_back([this, name] {
      ::pthread_setname_np(::pthread_self(), name);
      run();
    });
  }
}

Workers::~Workers() { finish(); }

void Workers::submit(std::function<void()> job) noexcept {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void Workers::finish() {
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

void Workers::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return finishing_ || !jobs_.empty(); });
    if (jobs_.empty()) {
      return;
    }
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
  }
}

}  // namespace ssdpulse::http
