// SPDX-License-Identifier: Apache-2.0
// How is a page made smaller? libdeflate's fastest level: less than half the time of zlib's, and smaller.
#pragma once

#include <optional>
#include <string>

namespace ssdpulse::exposition {

/// The bytes in gzip format; nothing if there is no memory for it: then send them as they are.
std::optional<std::string> gzip(const std::string& bytes);

}  // namespace ssdpulse::exposition
