// SPDX-License-Identifier: Apache-2.0
// add_history(): the web server's routes for the past. /api/v1/history: which devices are known, settings that changed,
// marks; /api/v1/history/DEVICE: one device in any window; /api/v1/compare/DEVICE: a window against one before it; POST
// /api/v1/marks: records something that somebody did; /report: one device before and after a moment.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/history/history_reader.h"
#include "exporters/http/http_page.h"

namespace ssdpulse::serve {

/// Limits how often a mark may be added: a script that loops must not push out the marks of people, nor keep others
/// from setting theirs. Thread-safe.
class MarkRate {
 public:
  /// Of one sender: the history keeps 10,000 marks, and nobody marks more by hand.
  static constexpr int kMaxMarksPerMinute = 60;
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

/// Stores a mark: History::keep(). Called on any thread.
using KeepMark = std::function<std::future<util::Result<model::WallTime>>(model::Mark)>;

/// Adds the routes. `hosts`: as for add_page(). `own_name`: of this host. The reader must outlive them.
///
/// Marks are the only thing that can be changed from outside. They are accepted from this host (or over a unix socket)
/// and from clients with a user's password, if the request has the header X-Ssdpulse: a page of another site in
/// somebody's browser can send neither that header nor a Host of ours. At most 60 a minute from each user of the unix
/// socket, from each user with a password, and from all others together. Answered with 200 once the mark is on the
/// disk, with 503 and the reason if it is not kept, or not confirmed within 5 seconds.
void add_history(http::Routes& routes, history::Reader& reader, KeepMark keep_mark, std::vector<std::string> hosts,
                 std::string own_name = {});

}  // namespace ssdpulse::serve
