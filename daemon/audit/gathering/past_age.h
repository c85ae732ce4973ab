// SPDX-License-Identifier: Apache-2.0
// PastAge: is what was read of the history still all that there is to judge by? Not once a spike has ended since: its
// waiting would be neither in the past nor in the metric of those that go on. Pure.
#pragma once

#include <chrono>
#include <optional>

namespace ssdpulse::gathering {

class PastAge {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit PastAge(std::chrono::minutes most) : most_(most) {}

  /// `spikes`: how many have ended since the daemon's start.
  [[nodiscard]] bool is_due(Time now, double spikes) const {
    return !read_at_ || now - *read_at_ >= most_ || spikes != spikes_;
  }
  void was_read(Time now, double spikes) {
    read_at_ = now;
    spikes_ = spikes;
  }

 private:
  std::chrono::minutes most_;
  std::optional<Time> read_at_;
  double spikes_ = 0;
};

}  // namespace ssdpulse::gathering
