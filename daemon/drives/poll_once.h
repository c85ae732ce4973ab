// SPDX-License-Identifier: Apache-2.0
// poll_once(): what each NVMe drive of this host reports when asked once. For commands that exit at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/sources/nvme/controllers.h"
#include "daemon/sources/nvme/pages/drive_reading.h"
#include "daemon/util/result.h"

namespace ssdpulse::drives {

struct DriveAnswer {
  nvme::NvmeSubsystem subsystem;
  std::optional<nvme::DriveReading> reading;  // of a drive that identified itself
  std::string failure;                        // why there is none, in words
};

/// Asks every live drive, and waits up to 5 s, as long as a healthy drive may take. An error if sysfs cannot be read.
util::Result<std::vector<DriveAnswer>> poll_once();

}  // namespace ssdpulse::drives
