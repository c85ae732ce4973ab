// SPDX-License-Identifier: Apache-2.0
// What can be done with a history file as a whole, by a command: check it, copy it while a daemon writes to it, and
// save from a damaged one what is readable. None of them writes to the file: where its last writer was killed within a
// transaction, they work on a private copy, in which that is undone. Blocks as long as the disk does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "daemon/util/result.h"

namespace ssdpulse::history {

struct FileReport {
  std::map<std::string, std::uint64_t> rows;  // by table; empty if they cannot be counted
  std::uint64_t bytes = 0;
  bool undone = false;  // a transaction in which the last writer was killed: this is what the file will be without it
  std::vector<std::string> problems;  // none: the file is whole, and agrees with itself
};

/// Reads the whole file in one transaction: a daemon's rows wait meanwhile. An error: there is no such file, or it
/// cannot be read.
util::Result<FileReport> check_file(const std::string& path);

/// `done`: 0 to 1.
using Progress = std::function<void(double done)>;

/// A consistent copy, by SQLite's own online backup: a daemon may write meanwhile. `to` must not exist; it appears when
/// it is complete, for those who may read `path`.
util::Result<void> back_up(const std::string& path, const std::string& to, const Progress& progress);

/// Writes what is readable in `path` to a new file; returns which rows are lost, in words. See salvage.h.
util::Result<std::string> salvage_file(const std::string& path, const std::string& to);

}  // namespace ssdpulse::history
