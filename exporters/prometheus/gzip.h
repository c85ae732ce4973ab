// SPDX-License-Identifier: Apache-2.0
// How is a page made smaller? zlib's fastest level: repeated label names make even that a factor of ten or more.
#pragma once

#include <optional>
#include <string>

namespace ssdpulse::exposition {

/// The bytes in gzip format; nothing if zlib has no memory, then send them as they are.
std::optional<std::string> gzip(const std::string& bytes);

}  // namespace ssdpulse::exposition
