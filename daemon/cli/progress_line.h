// SPDX-License-Identifier: Apache-2.0
// How far a command has come: after two seconds, one line on stderr that is rewritten again and again; none without a
// terminal.
#pragma once

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <string>

namespace ssdpulse::cli {

class ProgressLine {
 public:
  /// `share`: of all that is to be done, 0 to 1.
  void show(const std::string& what, double share) {
    if (Clock::now() - began_ < std::chrono::seconds(2) || ::isatty(STDERR_FILENO) == 0) {
      return;
    }
    shown_ = true;
    std::cerr << "\r" << what << ": " << static_cast<int>(100 * share) << " %  " << std::flush;
  }
  ~ProgressLine() {
    if (shown_) {
      std::cerr << "\r\033[K" << std::flush;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point began_ = Clock::now();
  bool shown_ = false;
};

}  // namespace ssdpulse::cli
