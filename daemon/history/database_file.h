// SPDX-License-Identifier: Apache-2.0
// Opens a history file, or creates it, and checks that it is a history of this version and intact. Changes nothing in a
// file that it rejects; FileIdentity tells which file was checked.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

inline constexpr std::int64_t kApplicationId = 0x53534448;               // "SSDH"
inline constexpr std::int64_t kApplicationIdBeforeRelease = 0x53534450;  // "SSDP", of builds before 1.0.0: not read
/// A change of schema.sql needs a higher one.
inline constexpr std::int64_t kSchemaVersion = 1;
/// An hour of a busy device is some 2 to 4 KiB; a 4 KiB page would hold one hour and waste the rest. An existing file
/// keeps its page size: changing it would mean rewriting the whole file.
inline constexpr std::int64_t kPageBytesOfNewFiles = 16384;

/// The file that a path referred to; a file is checked in full once, not at every attempt on a full disk.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

/// `checked`: the file that needs no other check; on success it becomes the one that was opened. `stop` ends a check
/// early, as a failure of the environment.
Outcome<Connection> open_database(const std::string& path, std::uint64_t size_limit_bytes,
                                  std::optional<FileIdentity>& checked, const std::atomic<bool>& stop);

/// Whether a file may have fewer pages than its header says.
enum class Truncated { refused, allowed };
/// Opens an existing history of this version to read it; does not check whether it is intact.
Outcome<Connection> open_existing(const std::string& path, Truncated truncated = Truncated::refused);
/// Likewise, checked in full, in a transaction: what is read afterwards is of the same moment.
Outcome<Connection> open_to_check(const std::string& path);

/// So many bytes, in pages of the file.
Outcome<std::int64_t> pages_of(Connection& connection, std::uint64_t bytes);

}  // namespace ssdpulse::history
