// SPDX-License-Identifier: Apache-2.0
// recorded(): the settings that the history keeps, under their names there. Only what somebody sets, not what changes
// by itself, such as a link's speed or the check of an array. Pure.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/host_settings.h"

namespace ssdpulse::host {

/// Settings of a disk, its partitions, and `volumes` above it, which are arrays and dm devices.
model::RecordedSettings recorded(const model::DiskSettings& disk, const std::vector<model::DiskSettings>& volumes = {});

/// Settings of the host; `files`: as in HostSettings::files.
model::RecordedSettings recorded(const model::Attributes& files);

/// A timer of the host, by its name; no values where it cannot be seen.
model::RecordedSettings recorded(const std::string& name, const model::TimerSettings& timer);

}  // namespace ssdpulse::host
