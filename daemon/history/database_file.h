// SPDX-License-Identifier: Apache-2.0
// Opens a history file, or creates it, and checks that it is ours and intact. Changes nothing in a file that it
// rejects; set_aside.h decides what becomes of such a file.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

inline constexpr std::int64_t kApplicationId = 0x53534450;  // "SSDP"
inline constexpr std::int64_t kSchemaVersion = 4;
/// Of new files: an hour of a busy device is some 2 to 4 KiB, of which pages of 4 KiB would hold one and waste the
/// rest. A file that is there keeps its own: to change it means writing the whole file again, next to the old one.
inline constexpr std::int64_t kPageBytesOfNewFiles = 16384;

/// Which file a path named; a file is read through once, not at every attempt on a full disk.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

/// `checked`: the file that needs no other look through, and after success the one that was opened.
/// `stop` ends a look through early, as a failure of the environment.
Outcome<Connection> open_database(const std::string& path, std::uint64_t size_limit_bytes,
                                  std::optional<FileIdentity>& checked, const std::atomic<bool>& stop);

/// How many of the file's own pages that size is.
Outcome<std::int64_t> pages_of(Connection& connection, std::uint64_t bytes);

}  // namespace ssdpulse::history
