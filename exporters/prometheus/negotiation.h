// SPDX-License-Identifier: Apache-2.0
// Chooses the format for a client, from its Accept header (RFC 9110, 12.5).
#pragma once

#include <cstdint>
#include <string_view>

namespace ssdpulse::exposition {

/// native_protobuf: histograms only in their native form.
enum class Format : std::uint8_t { text, protobuf, native_protobuf };

/// Protobuf only if the client names it and prefers it, or likes both equally; never by a wildcard. Without a header,
/// or if the client accepts neither, text: a scraper gets something it can complain about rather than a 406.
/// `native_alone`: the client has stated that it has no use for classic buckets if it gets native ones.
Format choose_format(std::string_view accept, bool native_alone = false);

}  // namespace ssdpulse::exposition
