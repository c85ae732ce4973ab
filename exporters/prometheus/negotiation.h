// SPDX-License-Identifier: Apache-2.0
// Chooses format and coding for a client, from its Accept and Accept-Encoding headers (RFC 9110, 12.5).
#pragma once

#include <cstdint>
#include <string_view>

namespace ssdpulse::exposition {

/// native_protobuf: histograms in their native form alone.
enum class Format : std::uint8_t { text, protobuf, native_protobuf };

/// Protobuf only for who names it and prefers it, or likes both the same; never by a wildcard. Without a header, or
/// where a client accepts neither, text: a scraper gets something it can complain about rather than a 406.
/// `native_alone`: the client has said that it has no use for classic buckets where it gets native ones.
Format choose_format(std::string_view accept, bool native_alone = false);

}  // namespace ssdpulse::exposition
