// SPDX-License-Identifier: Apache-2.0
// keyed_hash(): HMAC-SHA-256, which hides a text. The same text always looks the same under one key, and nobody without
// the key can say, or find by trial, what it was.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/base/result.h"

namespace ssdpulse::util {

using HashKey = std::array<std::uint8_t, 32>;

/// From the kernel's random numbers.
Result<HashKey> random_hash_key();

/// The first `digits` (at most 64) hexadecimal digits of the hash.
std::string keyed_hash(const HashKey& key, std::string_view text, std::size_t digits);

}  // namespace ssdpulse::util
