// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/logins.h"

#include <chrono>
#include <utility>

namespace ssdpulse::http {
namespace {

constexpr int kPausePerWork = 3;

}  // namespace

Logins::~Logins() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
}

void Logins::submit(std::function<bool()> check) noexcept {
  worker_.submit([this, check = std::move(check)] {
    const auto begin = std::chrono::steady_clock::now();
    if (!check()) {
      pause(kPausePerWork * (std::chrono::steady_clock::now() - begin));
    }
  });
}

void Logins::pause(std::chrono::steady_clock::duration time) {
  std::unique_lock lock(mutex_);
  stopped_.wait_for(lock, time, [this] { return stopping_; });
}

}  // namespace ssdpulse::http
