// SPDX-License-Identifier: Apache-2.0
// Restricts which files this process can still open, whoever it runs as. By Landlock, because root without capabilities
// can still open root's files, device nodes among them.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/util/result.h"

namespace ssdpulse::confinement {

enum class FileAccess : std::uint8_t { restricted, unrestricted };

/// From now on, for the calling thread and those that it starts: nothing below /dev can be opened but null and urandom,
/// and nothing can be written, made or removed but below `writable`, a directory that exists ("": none).
/// `unrestricted`: this kernel has no Landlock (before Linux 5.13, or switched off), and nothing has changed.
/// Needs no_new_privs.
util::Result<FileAccess> restrict_file_access(const std::string& writable);

}  // namespace ssdpulse::confinement
