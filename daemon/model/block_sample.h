// SPDX-License-Identifier: Apache-2.0
// BlockSample: what the block layer did on each device, up to one reading of the kernel's cells.
// Values only; the block source fills them in.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/model/attribution.h"
#include "daemon/model/device.h"
#include "daemon/model/discards.h"
#include "daemon/model/flash_samples.h"
#include "daemon/model/operation.h"
#include "daemon/model/snapshot.h"
#include "daemon/util/outside_text.h"

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
  std::map<std::string, util::OutsideText> frozen = {};  // super blocks, by MAJOR:MINOR: the command that froze it
  std::shared_ptr<const SeenCgroups> cgroups = {};       // those named in any attribution; null: switched off
  std::shared_ptr<const FlashSamples> flash;             // null where no device is sampled
};

}  // namespace ssdpulse::model
