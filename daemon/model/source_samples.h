// SPDX-License-Identifier: Apache-2.0
// BlockSample: what the block layer did on each device, up to one reading of the kernel's cells. DriveTick: what is
// known about an NVMe drive in one second. Values only.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/model/block_io.h"
#include "daemon/model/clock.h"
#include "daemon/model/device.h"
#include "daemon/model/discard_values.h"
#include "daemon/model/flash_values.h"
#include "daemon/model/nvme_drive.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/tenant_io.h"
#include "daemon/model/volume_io.h"

namespace ssdpulse::model {

/// What the accounting identity needs next to DeviceIo: events by operation (see bpf/abi/block_abi.h).
struct OperationEvents {
  std::array<std::uint64_t, kOperations> missed{};  // Loss::completion_missed
  std::array<std::uint64_t, kOperations> strays{};  // Loss::stray
  std::uint64_t flush_data_stages = 0;  // completions of requests with data that are one stage of a flush sequence
  std::uint64_t lone_flushes = 0;       // completions of flushes that are no stage of one
};

struct DeviceSample {
  std::shared_ptr<const Device> device;
  std::shared_ptr<const DeviceIo> io;  // null: nothing of the device is measured
  OperationEvents events;
  std::uint64_t last_discard_end_ns = 0;                      // CLOCK_MONOTONIC; 0: none, or unknown in this mode
  std::shared_ptr<const DeviceAttribution> attribution = {};  // null: switched off, or nothing is measured
  bool whole = true;                                          // all its paths are measured
};

struct BlockSample {
  std::vector<DeviceSample> devices;  // measured ones, sorted by name
  std::array<std::uint64_t, kHostLosses> losses{};
  std::uint64_t diskless_requests = 0;                   // see Snapshot
  std::map<std::string, DiscardSubmitters> discards;     // by volume, including stacked disks; read after the devices
  std::vector<std::shared_ptr<const BioIo>> bios = {};   // of volumes and of what lies below; sorted by device
  std::vector<std::string> volumes_left_out = {};        // the kernel's tables have no room for them; sorted
  std::map<std::string, util::OutsideText> frozen = {};  // super blocks, by MAJOR:MINOR: the command that froze it
  std::shared_ptr<const SeenCgroups> cgroups = {};       // those named in any attribution; null: switched off
  std::shared_ptr<const FlashSamples> flash;             // null where no device is sampled
};

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

/// The counters that were chosen from one poll: see choose_source() in daemon/nvme_pages/drive_reading.h. Its brackets
/// are what the block layer had written just before and after.
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

/// What a drive reported, how polling it goes, and the readings of its write counters since the last tick.
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
