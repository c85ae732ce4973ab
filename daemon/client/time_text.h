// SPDX-License-Identifier: Apache-2.0
// parse_time(): the moment that a person means by a text such as "03:00" or "-10m".
#pragma once

#include <chrono>
#include <string>

#include "daemon/util/result.h"

namespace ssdpulse::client {

using WallTime = std::chrono::system_clock::time_point;

/// "03:00", "03:00:12" (the last such time), "2026-11-23 03:00", "2026-11-23T03:00:12", all in local time or, with a Z
/// at the end, in UTC; "-10m" (s, m, h, d ago); "@1763866800" (seconds since the epoch). Anything else is an error.
util::Result<WallTime> parse_time(const std::string& text, WallTime now);

}  // namespace ssdpulse::client
