// SPDX-License-Identifier: Apache-2.0
// Compresses a page, with libdeflate's fastest level: less than half the time of zlib's, and a smaller result.
#pragma once

#include <optional>
#include <string>

namespace ssdpulse::exposition {

/// The bytes in gzip format; nothing if there is no memory for it: then send them as they are.
std::optional<std::string> gzip(const std::string& bytes);

}  // namespace ssdpulse::exposition
