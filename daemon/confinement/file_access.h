// SPDX-License-Identifier: Apache-2.0
// Restricts which files this process can still open, whatever user it runs as. Uses Landlock, because root without
// capabilities can still open root's files, including device nodes.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/util/result.h"

namespace ssdpulse::confinement {

enum class FileAccess : std::uint8_t { restricted, unrestricted };

/// From now on, for the calling thread and those that it starts: below /dev only null and urandom can be opened, and
/// nothing can be written, made or removed except below `writable`, an existing directory ("": none). `unrestricted`:
/// this kernel has no Landlock (before Linux 5.13, or switched off), and nothing has changed.
/// Needs no_new_privs.
util::Result<FileAccess> restrict_file_access(const std::string& writable);

}  // namespace ssdpulse::confinement
