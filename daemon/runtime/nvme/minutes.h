// SPDX-License-Identifier: Apache-2.0
// What is stored of the block layer for each minute of a drive.
#pragma once

#include "daemon/runtime/history/drive_minute.h"
#include "daemon/runtime/nvme/drive_io.h"

namespace ssdpulse::runtime {

class DriveMinutes {
 public:
  /// The minute that ends now: what was done since the one before it ended.
  history::DriveMinute end(history::Minute minute, const DriveIo& now);

 private:
  DriveIo begin_;
};

}  // namespace ssdpulse::runtime
