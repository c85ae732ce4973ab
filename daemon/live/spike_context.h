// SPDX-License-Identifier: Apache-2.0
// Which seconds around a spike are worth keeping? Those from a minute before it to a minute after, if memory still has
// them. Spikes of one device that lie close together share theirs. Owned by one thread.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/live/ring.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::live {

/// Second by second: number of the snapshot, end in ms since the epoch, length in ms, and the column with its length in
/// bytes (0: the device was not measured then), all variable-length numbers except the column.
struct SpikeSeconds {
  std::string device;
  model::WallTime begin;
  model::WallTime end;
  double excess_seconds = 0;  // of the worst spike
  std::string bytes;
};

/// From the bytes of SpikeSeconds, up to the first that are not valid: nothing in a file is trusted beyond that.
std::vector<Second> seconds_in(std::string_view bytes);

class SpikeContext {
 public:
  static constexpr std::chrono::seconds kAround{60};
  static constexpr std::size_t kMostBytes = 1U << 20;

  /// Takes in the spikes that ended, and returns the seconds around those that ended at least a minute ago.
  std::vector<SpikeSeconds> due(const model::Snapshot& snapshot, const Ring& ring);

 private:
  struct Waiting {
    std::string device;
    model::WallTime begin;
    model::WallTime end;
    double excess_seconds = 0;
  };
  void take(const model::LatencySpike& spike);

  std::vector<Waiting> waiting_;
};

}  // namespace ssdpulse::live
