// SPDX-License-Identifier: Apache-2.0
// DriveTick: what is known about an NVMe drive in one second: what it reported, how polling it goes, and the readings
// of its write counters since the last tick. Each reading has its own brackets: what the block layer had written just
// before and after.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/clock.h"
#include "daemon/model/nvme.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::model {

/// What the block layer did on all namespaces of a drive up to one moment, cumulative since the daemon's start.
struct BlockWrites {
  std::uint64_t written_bytes = 0;
  std::uint64_t zeroed_bytes = 0;
  std::uint64_t discarded_bytes = 0;
  std::uint64_t losses = 0;     // requests that may not have been counted
  std::uint64_t in_flight = 0;  // writes: a drive counts them at any time up to their end, we at their end
  bool erasing = false;         // write zeroes or discards are in flight, whose sizes are unknown
  bool operator==(const BlockWrites&) const = default;
};

/// The counters that were chosen from one poll: see analysis/write_amplification/source_choice.h.
struct CounterReading {
  std::shared_ptr<const NvmeIdentity> identity;  // of the drive that reported it
  std::string source;                            // empty: no page counts media writes
  std::string reason;                            // why no better source, or why none
  std::chrono::nanoseconds at{};                 // CLOCK_BOOTTIME, when the media counter had been read
  SteadyTime ended;                              // when the whole poll had ended
  WallTime wall;
  std::optional<ByteCounter> host_before;
  std::optional<ByteCounter> media;
  std::optional<ByteCounter> host_after;
  std::optional<ByteCounter> endurance_estimate;
  std::optional<double> percentage_used;    // 0.01 is one percent; may exceed 1
  bool counted_since_birth = true;          // both counters count since the drive's first day
  bool compresses = false;                  // the drive's media may receive less than the host writes
  std::optional<BlockWrites> block_before;  // the brackets; absent where not all namespaces are measured
  std::optional<BlockWrites> block_after;
  std::optional<std::uint64_t> largest_request_bytes;
};

struct DriveTick {
  std::shared_ptr<const NvmeDrive> drive;  // without its write amplification
  std::string key = {};                    // the same while it is the same drive
  bool identified = false;                 // the drive itself reported its identity; otherwise it is from sysfs
  bool known_now = false;                  // it answers, or did so recently: old figures do not count
  std::chrono::nanoseconds interval{};     // between two such readings
  std::vector<CounterReading> readings = {};
};

/// The first value of a field.
inline std::optional<double> value_of(const std::vector<NvmeValue>& values, NvmeField field) {
  const auto found =
      std::find_if(values.begin(), values.end(), [&](const auto& value) { return value.field == field; });
  return found == values.end() ? std::nullopt : std::optional(found->value);
}

}  // namespace ssdpulse::model
