// SPDX-License-Identifier: Apache-2.0
// Where a drive's ledgers continue when the daemon starts.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "daemon/analysis/write_amplification/checked_ledger.h"
#include "daemon/history/rows.h"
#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

/// Adds a ledger to the state to keep, with the name of its source, because another source's counters cannot continue
/// from it.
void add_kept_ledger(history::Bytes& bytes, const std::string& source, const analysis::CheckedLedger& ledger);

/// By source: each continues where the last process stopped, or else from what the minutes contain. `until`, on
/// CLOCK_BOOTTIME: readings from then on do not belong to the past.
std::map<std::string, analysis::CheckedLedger> ledgers_of_the_past(const history::Recalled& recalled,
                                                                   std::chrono::nanoseconds interval,
                                                                   std::chrono::nanoseconds until, const Tick& now,
                                                                   std::vector<log::Line>& lines);

}  // namespace ssdpulse::stages
