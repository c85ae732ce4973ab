// SPDX-License-Identifier: Apache-2.0
// Batch: the rows that are stored: for each drive and each device in each minute, and what happened. Values only.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/device_interval.h"
#include "daemon/model/history_answers.h"
#include "daemon/model/latency_spike.h"
#include "daemon/model/nvme_drive.h"

namespace ssdpulse::model {

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
  WriteCounters writes;
  std::optional<Uint128> host_count_before;  // of writes.host, before media was read; absent: at the same time
  std::optional<double> percentage_used;     // 0.01 = one percent, like the spare
  std::optional<double> available_spare;
  std::optional<double> temperature_celsius;
  std::uint64_t discard_bytes = 0;  // of this minute
};

/// What the ledger needs to find again. Its layout and version are the ledger's own.
struct DriveState {
  DriveKey drive;
  Bytes bytes;
};

inline constexpr std::size_t kMaxStateBytes = std::size_t{1} << 20U;
inline constexpr std::size_t kMaxNameBytes = 256;  // of a serial, a model, a firmware, a source
inline constexpr std::size_t kMaxIdentityBytes = 2048;

/// A device as the block layer knows it.
struct DeviceKey {
  std::string identity;  // what stays when the kernel renames it: see model/device_identity.h
  std::string name;
  std::string model;
  std::string serial;
  /// What else this device may be stored as, if nothing is stored as `identity`: this, or this with a WWID, which the
  /// kernel gives an NVMe namespace at one boot and not at the next. Empty where that is not certain.
  std::string without_wwid = {};
  /// With where it is attached: stored so once two devices were seen to report this identity. Empty: not known.
  std::string attached = {};
  bool operator==(const DeviceKey&) const = default;
};

/// What a device did in a minute, or in a part of it: rows of the same minute are added up.
struct DeviceMinute {
  DeviceKey device;
  Minute minute;
  DeviceInterval load;
  std::vector<TenantLoad> tenants = {};  // the heaviest and the rest; none where they are unknown
};

/// The seconds around a spike, in the encoding of whatever recorded them.
struct SpikeSeconds {
  std::string device;  // the kernel's name
  std::chrono::system_clock::time_point begin;
  std::chrono::system_clock::time_point end;
  double excess_seconds = 0;  // of the worst spike: seconds of the worst spikes are kept longest
  Bytes seconds;
};

/// The current value: it becomes a row if it differs from the last one in the file.
struct Setting {
  std::string device;  // DeviceKey::identity; empty: of the host
  std::string name;
  std::string value;
};

inline constexpr std::size_t kMaxSettingBytes = 5 * 512;  // of a name, of a value: for_history() writes a byte as five
inline constexpr std::size_t kMaxMarkBytes = 500;

/// What is added together, such as everything of one minute: all of it reaches the disk, or nothing.
struct Batch {
  std::vector<DriveMinute> minutes;
  std::vector<DriveState> states;
  std::vector<LatencySpike> spikes = {};
  std::vector<DeviceMinute> device_minutes = {};
  std::vector<PastBurst> bursts = {};
  std::vector<PastWait> waits = {};
  std::vector<SpikeSeconds> spike_seconds = {};
  std::vector<Setting> settings = {};
  std::vector<Mark> marks = {};
  std::chrono::system_clock::time_point at = {};  // of the settings

  [[nodiscard]] std::size_t rows() const;
  [[nodiscard]] bool empty() const { return rows() == 0; }
};

/// Calls `each(table, member)` for the table that each kind of row in a batch is for.
template <typename Each>
constexpr void for_each_table(Each&& each) {
  each("drive_minute", &Batch::minutes);
  each("drive", &Batch::states);
  each("latency_spike", &Batch::spikes);
  each("device_minute", &Batch::device_minutes);
  each("discard_burst", &Batch::bursts);
  each("host_wait", &Batch::waits);
  each("spike_seconds", &Batch::spike_seconds);
  each("setting", &Batch::settings);
  each("mark", &Batch::marks);
}

inline std::size_t Batch::rows() const {
  std::size_t rows = 0;
  for_each_table([&](const char*, auto member) { rows += (this->*member).size(); });
  return rows;
}

/// All of it becomes one batch.
inline void append(Batch& batch, Batch more) {
  for_each_table([&](const char*, auto member) {
    auto& from = more.*member;
    auto& to = batch.*member;
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  });
}

/// All but those about the file itself.
inline constexpr std::array kTables{"device",        "device_hour", "device_minute", "discard_burst", "drive",
                                    "drive_minute",  "host_wait",   "latency_spike", "mark",          "setting",
                                    "spike_seconds", "tenant",      "tenant_hour",   "tenant_minute"};

/// What is known about a drive of a given subsystem, serial and model, whatever firmware it had.
struct Recalled {
  std::vector<DriveMinute> minutes;  // ascending by minute; the newest kMaxRecalled
  std::optional<DriveState> state;   // the last one saved, and its firmware at that time
  std::uint64_t unreadable = 0;      // rows with content that we never write: left out
};

inline constexpr std::size_t kMaxRecalled = std::size_t{14} * 24 * 60;

}  // namespace ssdpulse::model
