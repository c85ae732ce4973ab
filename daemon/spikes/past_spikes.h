// SPDX-License-Identifier: Apache-2.0
// SpikeContext: collects the seconds around each spike that are worth keeping: those from a minute before it to a
// minute after, if memory still has them. Spikes of one device that lie close together share theirs. spike_of(),
// burst_of() and wait_of() turn what the history has into what would be seen now, so that both are described alike.
// Owned by one thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/history/recent_past.h"
#include "daemon/model/history_answers.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::spikes {

/// `bytes`, for each second: number of the snapshot, end in ms since the epoch, length in ms, length of the column in
/// bytes (0: the device was not measured then), and the column. All are variable-length numbers except the column.
struct SpikeSeconds {
  std::string device;
  model::WallTime begin;
  model::WallTime end;
  double excess_seconds = 0;  // of the worst spike
  std::string bytes;
};

/// Decodes SpikeSeconds::bytes, which come from a file. A second with an invalid column counts as not measured; where a
/// length is invalid, decoding ends.
std::vector<history::Second> seconds_in(std::string_view bytes);

class SpikeContext {
 public:
  static constexpr std::chrono::seconds kAround{60};
  static constexpr std::size_t kMaxBytes = 1U << 20;  // of one SpikeSeconds; further seconds are left out

  /// Takes in the spikes that ended, and returns the seconds around those that ended at least a minute ago, or that
  /// cover more than 12 minutes by now, before memory loses them.
  std::vector<SpikeSeconds> due(const model::Snapshot& snapshot, const history::Ring& ring);

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

/// Whatever does not look like evidence is left out.
model::LatencySpike spike_of(const model::PastSpike& past);
model::Burst burst_of(const model::PastBurst& past);
/// Nothing if its cause is none of this version's.
std::optional<model::HostWait> wait_of(const model::PastWait& past);

}  // namespace ssdpulse::spikes
