// SPDX-License-Identifier: Apache-2.0
// Which settings does the history keep, and under which names? Those that somebody turns: what moves by itself, such as
// a link's speed or the check of an array, is none. Pure.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/settings.h"

namespace ssdpulse::settings {

/// Of a disk, its partitions, and `volumes` above it, which are arrays and dm devices.
model::RecordedSettings recorded(const model::DiskSettings& disk, const std::vector<model::DiskSettings>& volumes = {});

/// Of the host; `files` as HostSettings::files.
model::RecordedSettings recorded(const model::Attributes& files);

/// Of the host: a timer, by its name; no values where it cannot be seen.
model::RecordedSettings recorded(const std::string& name, const model::TimerSettings& timer);

}  // namespace ssdpulse::settings
