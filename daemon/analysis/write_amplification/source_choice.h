// SPDX-License-Identifier: Apache-2.0
// Chooses the counters behind a drive's write amplification: the best page, by precedence, that counts media writes,
// and the host counter that goes with it. A page whose counters contradict SMART is no source. Names whatever was
// better and could not be used. Pure.
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

/// By source: what its counters were found to count in, where the page does not say it, or may say it wrongly. What was
/// found once stays, because the counters that it was settled by drift apart with time.
using SettledUnits = std::map<std::string, std::uint64_t, std::less<>>;

/// The reason where there is none against the source, and none better.
inline constexpr std::string_view kBestOffered = "the best it offers";

struct SourceChoice {
  std::string source;                             // empty: none
  std::string reason;                             // why nothing better, or why nothing at all
  std::optional<model::ByteCounter> host_before;  // the host counter read before the media counter,
  std::optional<model::ByteCounter> host_after;   // and behind it; the same where both stand on one page
  std::optional<model::ByteCounter> media;
  std::optional<model::ByteCounter> endurance_estimate;
  bool since_birth = true;        // both counters count from the drive's first day on
  std::chrono::nanoseconds at{};  // CLOCK_MONOTONIC, when the media counter had been read
  SettledUnits units;             // what is settled now
};

/// Of a reading that asked for media pages. `settled`: by earlier readings of this drive.
SourceChoice choose_source(const nvme::DriveReading& reading, const SettledUnits& settled = {});

/// The values of a page; those in a unit that is not settled are left out.
std::vector<model::NvmeValue> settled_values(const nvme::PageReading& entry, const SettledUnits& units);

}  // namespace ssdpulse::analysis
