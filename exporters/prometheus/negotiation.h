// SPDX-License-Identifier: Apache-2.0
// Which format and which coding does this client want? Reads Accept and Accept-Encoding (RFC 9110, 12.5).
#pragma once

#include <cstdint>
#include <string_view>

namespace ssdpulse::exposition {

enum class Format : std::uint8_t { text, protobuf };

/// Protobuf only for who names it and prefers it, or likes both the same; never by a wildcard. Without a header, or
/// where a client accepts neither, text: a scraper gets something it can complain about rather than a 406.
Format choose_format(std::string_view accept);

/// Whether to compress: gzip (or *) accepted and not less liked than identity. Not without a header.
bool prefers_gzip(std::string_view accept_encoding);

}  // namespace ssdpulse::exposition
