// SPDX-License-Identifier: Apache-2.0
// MarkRate: limits how often a mark may be added. A script that loops must not push out the marks of people, nor keep
// others from setting theirs.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace ssdpulse::web {

/// Thread-safe.
class MarkRate {
 public:
  static constexpr int kMaxMarksPerMinute =
      60;  // of one sender: the history keeps 10,000 marks; nobody marks more by hand
  static constexpr std::size_t kMaxSenders = 64;  // in a minute; further ones share a budget

  /// True at most kMaxMarksPerMinute times in a minute for each sender. The minute begins with the first mark of
  /// anybody.
  bool take(const std::string& sender, std::chrono::steady_clock::time_point now) {
    const std::lock_guard lock(mutex_);
    if (taken_.empty() || now - begin_ >= std::chrono::minutes(1)) {
      begin_ = now;
      taken_.clear();
    }
    int& taken = taken_[taken_.size() < kMaxSenders || taken_.contains(sender) ? sender : ""];
    if (taken >= kMaxMarksPerMinute) {
      return false;
    }
    ++taken;
    return true;
  }

 private:
  std::mutex mutex_;
  std::chrono::steady_clock::time_point begin_;
  std::map<std::string, int> taken_;
};

}  // namespace ssdpulse::web
