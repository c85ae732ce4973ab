// SPDX-License-Identifier: Apache-2.0
// What did one second show? All that the analyses look at, taken together at one moment and never changed afterwards.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/block_sample.h"
#include "daemon/model/device.h"
#include "daemon/model/nvme.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/write_hint_path.h"

namespace ssdpulse::model {

using SteadyTime = std::chrono::steady_clock::time_point;

/// Our account of a device around the kernel's own, read in this order.
struct AccountLook {
  DeviceSample ours_before;
  DiskStats kernel_before;
  DiskStats kernel_after;
  DeviceSample ours_after;
};

struct DeviceTick {
  DeviceSample block;
  std::uint64_t kernel_account = 0;  // number of what the kernel keeps of it: 0 none, another one since it began anew
  std::optional<AccountLook> account = {};              // only at every few ticks
  std::optional<KernelInFlight> kernel_in_flight = {};  // see DeviceSnapshot
  std::shared_ptr<const NvmeDrive> drive = {};          // the one that it is a namespace of; null: none
  const NvmeNamespace* drive_namespace = nullptr;       // of that drive
};

/// What the configuration says to the analyses; it may be another at the next tick.
struct AnalysisSettings {
  std::chrono::nanoseconds discard_gap{std::chrono::seconds(1)};       // silence that ends a burst
  std::chrono::nanoseconds spike_floor{std::chrono::milliseconds(2)};  // what is faster is no spike
};

struct Tick {
  SteadyTime at;  // the two clocks, when the block layer had been read
  WallTime wall;
  std::shared_ptr<const Inventory> inventory;
  std::vector<DeviceTick> devices;                    // measured ones, sorted by name
  std::map<std::string, DiscardSubmitters> discards;  // this and the next two: see BlockSample
  std::array<std::uint64_t, kHostLosses> losses{};
  std::uint64_t diskless_requests = 0;
  std::vector<std::shared_ptr<const NvmeDrive>> drives;  // sorted by controller
  HintReach hint_reach = HintReach::dropped;             // how far this kernel carries write hints
  AnalysisSettings settings;
};

/// Gives each device the drive that it is a namespace of: the one place where the two are joined.
void join_drives(Tick& tick);

}  // namespace ssdpulse::model
