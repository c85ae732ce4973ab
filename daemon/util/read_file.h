// SPDX-License-Identifier: Apache-2.0
// Reads a small file completely, but never more than a bound. Made for sysfs and procfs, where sizes from stat(2) mean
// nothing and a file may vanish at any time.
#pragma once

#include <cstddef>
#include <string>

#include "daemon/util/result.h"

namespace ssdpulse::util {

/// The whole content; a file longer than `limit` is an error (EFBIG), never a silently shortened text.
Result<std::string> read_file(const std::string& path, std::size_t limit);

}  // namespace ssdpulse::util
