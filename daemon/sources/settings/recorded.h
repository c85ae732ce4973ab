// SPDX-License-Identifier: Apache-2.0
// Which settings does the history keep, and under which names? Those that somebody turns: what moves by itself, such as
// a link's speed or the check of an array, is none. Pure.
#pragma once

#include "daemon/model/settings.h"

namespace ssdpulse::settings {

/// Of a disk or an array.
model::RecordedSettings recorded(const model::DiskSettings& disk);

/// Of the host; `files` as HostSettings::files.
model::RecordedSettings recorded(const model::Attributes& files);

}  // namespace ssdpulse::settings
