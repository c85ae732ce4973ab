// SPDX-License-Identifier: Apache-2.0
// MarkRate: limits how often a mark may be added. A script that loops must not push out the marks of people.
#pragma once

#include <chrono>
#include <mutex>

namespace ssdpulse::web {

/// Thread-safe.
class MarkRate {
 public:
  static constexpr int kMostAMinute = 60;  // the history keeps 10,000 marks; nobody marks more often by hand

  /// True at most kMostAMinute times in a minute, which begins with the first mark that is taken.
  bool take(std::chrono::steady_clock::time_point now) {
    const std::lock_guard lock(mutex_);
    if (taken_ == 0 || now - begin_ >= std::chrono::minutes(1)) {
      begin_ = now;
      taken_ = 0;
    }
    if (taken_ >= kMostAMinute) {
      return false;
    }
    ++taken_;
    return true;
  }

 private:
  std::mutex mutex_;
  std::chrono::steady_clock::time_point begin_;
  int taken_ = 0;
};

}  // namespace ssdpulse::web
