// SPDX-License-Identifier: Apache-2.0
// Finds the unit of a drive's counters if its vendor does not publish it.
// The unit is found by comparison with the health page's data units of 512000 bytes, over the drive's life or over a
// window: counts and differences of counts both work. Pure; the caller remembers the answer.
//
// How a ledger uses it. A page whose host and media counters both have unit 0 counts both in the same unit: their ratio
// is known at once, bytes are not. unit_of_host_counter gives the bytes too; if it returns 0, only the ratio is
// reported. A page with only a media counter and LogPage::media_in_bytes_or_data_units waits for unit_of_media_counter:
// until it finds a unit, there is neither ratio nor bytes.
#pragma once

#include <cstdint>

#include "daemon/model/nvme.h"

namespace ssdpulse::analysis {

/// The unit in bytes of a vendor page's host counter, or 0 while none is certain: the only one with which the counters
/// can agree within 10 % or, if two can (a million bytes and a mebibyte), within 1 %, and certainly do, whatever their
/// rounding hides.
std::uint64_t unit_of_host_counter(model::Uint128 host_count, model::Uint128 data_units_written);

/// 1 or 512000, or 0 while neither is certain: the one that gives a write amplification between 0.3 and 1000.
/// They are so far apart that only one can fit. For counts over the drive's life only.
std::uint64_t unit_of_media_counter(model::Uint128 media_count, model::Uint128 data_units_written);

/// The unit of page 09h, which firmware has been known to count in data units: 10^9 or 512000, or 0 while neither fits.
/// `group_data_units`: summed over all endurance groups.
std::uint64_t unit_of_endurance_groups(model::Uint128 group_data_units, model::Uint128 data_units_written);

}  // namespace ssdpulse::analysis
