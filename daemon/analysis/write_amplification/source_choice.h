// SPDX-License-Identifier: Apache-2.0
// Chooses the counters behind a drive's write amplification: the best page, by precedence, that counts media writes,
// and the host counter that goes with it. A page whose counters contradict SMART is not a source. Names any better page
// that could not be used. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/nvme.h"
#include "daemon/sources/nvme/pages/drive_reading.h"

namespace ssdpulse::analysis {

/// By source: the unit that its counters were found to count in, if the page does not state it, or may state it
/// wrongly. A unit once found is kept, because the counters that settled it drift apart with time.
using SettledUnits = std::map<std::string, std::uint64_t, std::less<>>;

/// The reason if nothing speaks against the source and there is none better.
inline constexpr std::string_view kBestOffered = "the best it offers";

struct SourceChoice {
  std::string source;                             // empty: none
  std::string reason;                             // why nothing better, or why nothing at all
  std::optional<model::ByteCounter> host_before;  // the host counter read before the media counter,
  std::optional<model::ByteCounter> host_after;   // and after it; the same if both are on one page
  std::optional<model::ByteCounter> media;
  std::optional<model::ByteCounter> endurance_estimate;
  bool since_birth = true;        // both counters have counted since the drive's first day
  std::chrono::nanoseconds at{};  // CLOCK_MONOTONIC, when the media counter had been read
  SettledUnits units;             // what is settled now
};

/// For a reading that asked for media pages. `settled`: from earlier readings of this drive.
SourceChoice choose_source(const nvme::DriveReading& reading, const SettledUnits& settled = {});

/// The values of a page; those in a unit that is not settled are left out.
std::vector<model::NvmeValue> settled_values(const nvme::PageReading& entry, const SettledUnits& units);

}  // namespace ssdpulse::analysis
