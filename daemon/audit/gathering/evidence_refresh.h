// SPDX-License-Identifier: Apache-2.0
// EvidenceRefresh: whether the part of the history that was read is still all there is to judge by. It is not once
// another spike has ended: its waiting would be neither in that part nor in the metric of ongoing spikes. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace ssdpulse::gathering {

class EvidenceRefresh {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit EvidenceRefresh(std::chrono::minutes most) : most_(most) {}

  /// `spikes`: how many have ended since the daemon's start.
  [[nodiscard]] bool is_due(Time now, std::uint64_t spikes) const {
    return !read_at_ || now - *read_at_ >= most_ || spikes != spikes_;
  }
  void was_read(Time now, std::uint64_t spikes) {
    read_at_ = now;
    spikes_ = spikes;
  }

 private:
  std::chrono::minutes most_;
  std::optional<Time> read_at_;
  std::uint64_t spikes_ = 0;
};

}  // namespace ssdpulse::gathering
