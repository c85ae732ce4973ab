// SPDX-License-Identifier: Apache-2.0
// DriveMinute: what is stored of a drive for each minute. Values only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/nvme.h"
#include "daemon/model/spikes.h"

namespace ssdpulse::history {

using Minute = std::chrono::sys_time<std::chrono::minutes>;
using Bytes = std::vector<std::uint8_t>;

struct DriveKey {
  std::string serial;
  std::string model;
  std::string firmware;
  std::string nqn = {};  // of its subsystem: behind a network, drives may share the other three
  bool operator==(const DriveKey&) const = default;
};

struct DriveMinute {
  DriveKey drive;
  Minute minute;                      // a second row of a drive and minute replaces the first
  std::chrono::nanoseconds boottime;  // CLOCK_BOOTTIME of the reading
  std::string source;                 // of both counters; empty: none
  model::WriteCounters writes;
  std::optional<model::Uint128> host_count_before;  // of writes.host, before media was read; absent: at the same time
  std::optional<double> percentage_used;            // 0.01 = one percent, as the spare
  std::optional<double> available_spare;
  std::optional<double> temperature_celsius;
  std::optional<double> read_p50_seconds;  // of the I/Os of this minute, as the next three
  std::optional<double> read_p99_seconds;
  std::optional<double> write_p50_seconds;
  std::optional<double> write_p99_seconds;
  std::uint64_t discard_bytes = 0;  // of this minute
};

/// What the ledger wants to find again. Its layout and version are the ledger's own.
struct DriveState {
  DriveKey drive;
  Bytes bytes;
};

inline constexpr std::size_t kMostStateBytes = std::size_t{1} << 20U;
inline constexpr std::size_t kMostNameBytes = 256;  // of a serial, a model, a firmware, a source

/// What is added together, such as everything of one minute: all of it is on disk, or nothing.
struct Batch {
  std::vector<DriveMinute> minutes;
  std::vector<DriveState> states;
  std::vector<model::LatencySpike> spikes = {};

  [[nodiscard]] bool empty() const { return minutes.empty() && states.empty() && spikes.empty(); }
};

/// What is known of a drive of some subsystem, serial and model, whatever firmware it had.
struct Recalled {
  std::vector<DriveMinute> minutes;  // by rising minute; the newest kMostRecalled
  std::optional<DriveState> state;   // the last one saved, and the firmware of then
  std::uint64_t unreadable = 0;      // rows that hold what no row of ours holds: left out
};

inline constexpr std::size_t kMostRecalled = std::size_t{14} * 24 * 60;

}  // namespace ssdpulse::history
