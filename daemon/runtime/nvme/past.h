// SPDX-License-Identifier: Apache-2.0
// Where does a drive's ledger go on from, when the daemon starts?
#pragma once

#include <chrono>
#include <string>

#include "daemon/analysis/write_amplification/write_ledger.h"
#include "daemon/runtime/history/drive_minute.h"

namespace ssdpulse::runtime {

/// CLOCK_BOOTTIME: the clock of the ledger.
std::chrono::nanoseconds since_boot();

/// A ledger as it is kept: with the name of its source, because another source's counters cannot go on from it.
history::Bytes kept_ledger(const std::string& source, const analysis::WriteLedger& ledger);

/// Goes on where the last process stopped, if that had the same source; else from what the minutes say; without any,
/// at nothing.
analysis::WriteLedger ledger_of_the_past(const history::Recalled& recalled, const std::string& source,
                                         std::chrono::nanoseconds interval);

}  // namespace ssdpulse::runtime
