// SPDX-License-Identifier: Apache-2.0
// Moves a file that this version cannot use out of the way, next to the new one under a dated name, with its journal.
// Only the newest few are kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "daemon/util/result.h"

namespace ssdpulse::history {

inline constexpr std::size_t kMaxSetAside = 3;

struct SetAside {
  std::string path;                  // where the file is now
  std::vector<std::string> removed;  // files removed to make room for it
};

/// `file` in `directory` becomes file.set-aside-YYYYmmddTHHMMSSZ, and the oldest beyond kMaxSetAside are removed.
/// Fails rather than remove one of the last day: if every file goes bad, the first of them is the one with something in
/// it: may_set_aside() says so before.
util::Result<void> may_set_aside(const std::string& directory, const std::string& file, std::chrono::sys_seconds now);
util::Result<SetAside> set_aside(const std::string& directory, const std::string& file, std::chrono::sys_seconds now);

/// When the newest of those that are there was set aside.
std::optional<std::chrono::sys_seconds> last_set_aside(const std::string& directory, const std::string& file);

}  // namespace ssdpulse::history
