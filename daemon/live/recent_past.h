// SPDX-License-Identifier: Apache-2.0
// What has happened lately, as far as memory reaches: the columns of the last 15 minutes, the latest spikes and bursts.
// One thread feeds it with each Snapshot, any number read.
#pragma once

#include <array>
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
  std::optional<model::WallTime> end;  // nothing: it goes on
  std::uint64_t bytes = 0;             // completed so far
};

class RecentPast {
 public:
  static constexpr std::size_t kMarks = 512;  // spikes, and as many bursts; the oldest are forgotten

  explicit RecentPast(std::size_t ring_bytes = Ring::kBytes) : ring_(ring_bytes) {}

  void observe(const model::Snapshot& snapshot);

  [[nodiscard]] const Ring& ring() const { return ring_; }
  [[nodiscard]] std::vector<model::LatencySpike> ended_spikes() const;  // in the order in which their cause was final
  [[nodiscard]] std::vector<Burst> bursts() const;                      // by their beginning
  /// When measuring began; what was before is unknown.
  [[nodiscard]] std::optional<model::WallTime> since() const;

 private:
  struct Known {
    std::shared_ptr<const model::DeviceIo> io;
    std::array<bool, model::kDiscardTriggers> bursting{};
    std::array<std::uint64_t, model::kDiscardTriggers> burst_bytes{};  // cumulative, before the burst if one goes on
    bool seen = false;
  };
  void note_bursts(const model::DeviceSnapshot& device, const Known& before, Known& now, model::WallTime at);
  Burst* open_burst(const std::string& device, model::DiscardTrigger trigger);

  Ring ring_;
  std::map<std::string, Known> known_;
  std::optional<model::WallTime> last_;

  mutable std::mutex mutex_;  // of what follows
  std::vector<model::LatencySpike> spikes_;
  std::vector<Burst> bursts_;
  std::optional<model::WallTime> since_;
};

}  // namespace ssdpulse::live
