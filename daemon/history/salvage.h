// SPDX-License-Identifier: Apache-2.0
// Salvage: a new history file with everything that is readable in a damaged one. A page that is not as it was written
// counts as empty; what was in it is known to be lost, by table, from the file's own ledger.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "daemon/history/sqlite.h"

namespace ssdpulse::history {

struct Salvaged {
  std::map<std::string, std::uint64_t> rows;  // that are in the new file, by table
  std::map<std::string, std::uint64_t> lost;  // only tables that lost any

  /// "mark 1, setting 3"; "none".
  [[nodiscard]] std::string lost_text() const;
};

/// `to` appears only when it is complete. Changes nothing in `from`. An error: `from` is no history of this version,
/// its first page is damaged, there is no room, or `stop` became true.
Outcome<Salvaged> salvage(const std::string& from, const std::string& to, const std::atomic<bool>& stop);

}  // namespace ssdpulse::history
