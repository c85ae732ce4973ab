// SPDX-License-Identifier: Apache-2.0
// persistent_key(): the key that hides the names of tenants. Made at random the first time and kept next to the
// history, so that a name is hidden behind the same text after a restart: `tenant-names.key`, 32 bytes, readable by its
// owner only.
#pragma once

#include <string>

#include "daemon/base/keyed_hash.h"
#include "daemon/base/result.h"

namespace ssdpulse::tenants {

inline constexpr const char* kKeyFileName = "tenant-names.key";

/// Reads the file, or creates it. `directory`: that of the history. Never replaces a file that is not a key.
util::Result<util::HashKey> persistent_key(const std::string& directory);

}  // namespace ssdpulse::tenants
