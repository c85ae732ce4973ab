// SPDX-License-Identifier: Apache-2.0
// What is kept of the block layer for each minute of a drive?
#pragma once

#include "daemon/drives/drive_io.h"
#include "daemon/history/rows.h"

namespace ssdpulse::drives {

class DriveMinutes {
 public:
  /// The minute that ends now: what was done since the one before it ended.
  history::DriveMinute end(history::Minute minute, const DriveIo& now);

 private:
  DriveIo begin_;
};

}  // namespace ssdpulse::drives
