// SPDX-License-Identifier: Apache-2.0
// DriveMinutes: what the history keeps from the block layer for each minute of a drive.
#pragma once

#include <cstdint>

#include "daemon/history/rows.h"
#include "daemon/model/latency_words.h"
#include "daemon/stages/tick.h"

namespace ssdpulse::stages {

/// Cumulative, over all namespaces of a drive. A history row reports the difference of two of these.
struct DriveIo {
  model::LatencyWords reads;  // I/Os by their time in the device; writes likewise
  model::LatencyWords writes;
  std::uint64_t discarded_bytes = 0;
};
DriveIo io_of(const model::DriveTick& drive, const Tick& tick);

class DriveMinutes {
 public:
  /// The row of the minute that ends now, without the drive's own counters: what was done since the previous one ended.
  history::DriveMinute end(history::Minute minute, const DriveIo& now);

 private:
  DriveIo begin_;
};

}  // namespace ssdpulse::stages
