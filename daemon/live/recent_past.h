// SPDX-License-Identifier: Apache-2.0
// What has happened recently, as far as memory reaches: the columns of the last 15 minutes, the latest spikes and
// bursts.
// One thread feeds it with each Snapshot; any number of threads read.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "daemon/live/ring.h"

namespace ssdpulse::live {

/// Discards of one trigger, close together.
struct Burst {
  std::string device;
  model::DiscardTrigger trigger{};
  model::WallTime begin;               // within a snapshot's interval
  std::optional<model::WallTime> end;  // nothing: it is ongoing
  std::uint64_t bytes = 0;             // completed so far
};

class RecentPast {
 public:
  static constexpr std::size_t kMarks = 512;  // spikes, and as many bursts; the oldest are forgotten

  explicit RecentPast(std::size_t ring_bytes = Ring::kBytes) : ring_(ring_bytes) {}

  /// `at`: when it was taken, by a clock that is never set. It distinguishes a column that took long from a wall clock
  /// that was set, or a host that slept; without it, the wall clock is trusted.
  void observe(const model::Snapshot& snapshot, std::optional<std::chrono::steady_clock::time_point> at = std::nullopt);

  [[nodiscard]] const Ring& ring() const { return ring_; }
  [[nodiscard]] std::vector<model::LatencySpike> ended_spikes() const;  // in the order in which causes became final
  [[nodiscard]] std::vector<model::HostWait> ended_waits() const;       // in the order in which they ended
  [[nodiscard]] std::vector<Burst> bursts() const;                      // by their beginning
  /// When measuring began; what was before is unknown.
  [[nodiscard]] std::optional<model::WallTime> since() const;
  /// The time since which no spike was forgotten; not before since().
  [[nodiscard]] std::optional<model::WallTime> remembered_since() const;

 private:
  struct DeviceState {
    std::array<bool, model::kDiscardTriggers> bursting{};
    std::array<std::uint64_t, model::kDiscardTriggers> burst_bytes{};  // cumulative, before the burst if one is active
    bool seen = false;
  };
  void note_bursts(const model::DeviceSnapshot& device, const DeviceState& before, DeviceState& now,
                   model::WallTime at);
  Burst* open_burst(const std::string& device, model::DiscardTrigger trigger);

  Ring ring_;
  std::map<std::string, DeviceState> states_;
  std::optional<model::WallTime> last_;
  std::optional<std::chrono::steady_clock::time_point> last_at_;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<model::LatencySpike> spikes_;
  std::vector<model::HostWait> waits_;
  std::vector<Burst> bursts_;
  std::optional<model::WallTime> since_;
  std::optional<model::WallTime> forgotten_until_;  // the end of the newest spike that is forgotten
};

}  // namespace ssdpulse::live
