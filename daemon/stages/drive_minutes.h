// SPDX-License-Identifier: Apache-2.0
// What is kept from the block layer for each minute of a drive?
#pragma once

#include <cstdint>

#include "daemon/history/rows.h"
#include "daemon/model/latency_words.h"
#include "daemon/stages/tick.h"

namespace ssdpulse::stages {

/// What a history row reports about the block layer, from the difference of two of these; all namespaces of a drive.
struct DriveIo {
  model::LatencyWords reads;
  model::LatencyWords writes;
  std::uint64_t discarded_bytes = 0;
};
DriveIo io_of(const model::DriveTick& drive, const Tick& tick);

class DriveMinutes {
 public:
  /// The minute that ends now: what was done since the previous one ended.
  history::DriveMinute end(history::Minute minute, const DriveIo& now);

 private:
  DriveIo begin_;
};

}  // namespace ssdpulse::stages
