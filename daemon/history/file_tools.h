// SPDX-License-Identifier: Apache-2.0
// What can be done with a history file as a whole: set it aside, salvage it, check it, and copy it while a daemon
// writes to it. SetAside, Salvaged and FileReport say what was done or found. check_file(), back_up() and
// salvage_file() never write to the file: where its last writer was killed within a transaction, they work on a private
// copy, in which that is undone. All block as long as the disk does.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

inline constexpr std::size_t kMaxSetAside = 3;

struct SetAside {
  std::string path;                  // where the file is now
  std::vector<std::string> removed;  // files removed to make room for it
};

/// `file` in `directory`, with its journal, becomes file.set-aside-YYYYmmddTHHMMSSZ, and the oldest beyond kMaxSetAside
/// are removed. Fails rather than remove one of the last day: if every file goes bad, the first is the one with
/// content. may_set_aside() tells in advance. Works on a full disk.
util::Result<void> may_set_aside(const std::string& directory, const std::string& file, std::chrono::sys_seconds now);
util::Result<SetAside> set_aside(const std::string& directory, const std::string& file, std::chrono::sys_seconds now);

/// When the newest of those that are there was set aside.
std::optional<std::chrono::sys_seconds> last_set_aside(const std::string& directory, const std::string& file);

struct Salvaged {
  std::map<std::string, std::uint64_t> rows;  // that are in the new file, by table
  std::map<std::string, std::uint64_t> lost;  // only tables that lost any

  /// "mark 1, setting 3"; "none".
  [[nodiscard]] std::string lost_text() const;
};

/// Writes a new history file with everything that is readable in a damaged one. A page that is not as it was written
/// counts as empty; what was in it is known to be lost, by table, from the file's own ledger. `to` appears only when it
/// is complete. Changes nothing in `from`. An error: `from` is no history of this version,
/// its first page is damaged, there is no room, or `stop` became true.
Outcome<Salvaged> salvage(const std::string& from, const std::string& to, const std::atomic<bool>& stop);

struct FileReport {
  std::map<std::string, std::uint64_t> rows;  // by table; empty if they cannot be counted
  std::uint64_t bytes = 0;
  bool undone = false;                // the report is without a transaction in which the last writer was killed
  std::vector<std::string> problems;  // none: the file is whole, and agrees with itself
};

/// Reads the whole file in one transaction: a daemon's rows wait meanwhile. An error: there is no such file, or it
/// cannot be read.
util::Result<FileReport> check_file(const std::string& path);

/// `share`: of the copy that is done, 0 to 1.
using Progress = std::function<void(double share)>;

/// A consistent copy, by SQLite's own online backup: a daemon may write meanwhile. `to` must not exist; it appears when
/// it is complete, for those who may read `path`.
util::Result<void> back_up(const std::string& path, const std::string& to, const Progress& progress);

/// Writes what is readable in `path` to a new file; returns Salvaged::lost_text().
util::Result<std::string> salvage_file(const std::string& path, const std::string& to);

}  // namespace ssdpulse::history
