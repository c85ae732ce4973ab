// SPDX-License-Identifier: Apache-2.0
// Logins: hashes passwords on one thread, while known clients are still answered. The caller limits how many wait for
// it. A wrong password is followed by a pause three times as long as the check, so guessing gets a quarter of one CPU.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "exporters/http/workers.h"

namespace ssdpulse::http {

class Logins {
 public:
  Logins() : worker_(1, "http-login") {}
  ~Logins();  // checks all that wait first, without pauses

  /// `check` must not throw; it returns whether the password was right.
  void submit(std::function<bool()> check) noexcept;

 private:
  void pause(std::chrono::steady_clock::duration time);

  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  Workers worker_;  // last: it uses the others
};

}  // namespace ssdpulse::http
