// SPDX-License-Identifier: Apache-2.0
// Tick: what one second showed. All that the analyses examine, collected at one moment and never changed afterwards.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/history/rows.h"
#include "daemon/model/block_sample.h"
#include "daemon/model/device.h"
#include "daemon/model/drive_tick.h"
#include "daemon/model/host_signals.h"
#include "daemon/model/nvme.h"
#include "daemon/model/settings.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/write_hint_path.h"
#include "daemon/util/result.h"

namespace ssdpulse::stages {

/// Our counts of a device before and after the kernel's own, read in this order.
struct AccountReading {
  model::DeviceSample ours_before;
  model::DiskStats kernel_before;
  model::DiskStats kernel_after;
  model::DeviceSample ours_after;
};

struct DeviceTick {
  model::DeviceSample block;
  std::uint64_t kernel_account = 0;  // number of the kernel's account of it; 0: none; changes when that restarts
  std::optional<AccountReading> account = {};  // only every few ticks
  model::AccountingDrift drift = {};           // our counts minus the kernel's, as of the last of those that counted
  std::optional<model::KernelInFlight> kernel_in_flight = {};  // see model::DeviceSnapshot
  std::shared_ptr<const model::NvmeDrive> drive = {};          // the one that it is a namespace of; null: none
  const model::NvmeNamespace* drive_namespace = nullptr;       // of that drive
  std::shared_ptr<const history::DeviceKey> history_key = {};  // see HistoryKeys
  std::shared_ptr<const model::DeviceInterval> interval = {};  // since the tick before; null: not known; see Intervals
};

/// What the analyses need from the configuration; it may change at the next tick.
struct AnalysisSettings {
  std::chrono::nanoseconds discard_gap{std::chrono::seconds(1)};       // silence that ends a burst
  std::chrono::nanoseconds spike_floor{std::chrono::milliseconds(2)};  // anything faster is no spike
  std::size_t tenants = 64;                                            // that have series of their own on a device
  double cpu_limit = 0;  // share of all CPUs' time, for the programs in the kernel; 0: no limit
  std::chrono::nanoseconds limit_after{std::chrono::minutes(1)};  // time above it until something is left out
};

struct Tick {
  bool last = false;     // the daemon is ending: what is to be kept must be returned now
  model::SteadyTime at;  // the two clocks, when the block layer had been read
  model::WallTime wall;
  std::chrono::nanoseconds boot{};  // the same moment on CLOCK_BOOTTIME
  std::shared_ptr<const model::Inventory> inventory;
  std::vector<DeviceTick> devices;                           // measured ones, sorted by name
  std::map<std::string, model::DiscardSubmitters> discards;  // this, cgroups, flash and losses: see BlockSample
  std::shared_ptr<const model::SeenCgroups> cgroups = {};
  std::vector<model::CgroupId> cgroups_gone = {};      // those whose directory no longer exists; sorted
  std::shared_ptr<const model::Tenants> tenants = {};  // the owners of those cgroups; null: names are off
  model::IoAccounting io_accounting = model::IoAccounting::unknown;
  std::shared_ptr<const model::HostSignals> host = {};  // null: not read
  std::shared_ptr<const model::FlashSamples> flash;
  std::array<std::uint64_t, model::kHostLosses> losses{};
  std::uint64_t diskless_requests = 0;                           // see model::Snapshot
  std::vector<model::DriveTick> drives;                          // sorted by controller
  bool keeps_history = true;                                     // otherwise no drive has a past
  std::map<std::string, util::Result<history::Recalled>> pasts;  // that were asked for, by the key of their drive
  model::HintReach hint_reach = model::HintReach::dropped;       // how far this kernel carries write hints
  std::vector<model::ProgramStats> programs;
  std::optional<model::RunCost> run_cost = {};  // of those programs; absent: unknown
  unsigned cpus = 1;                            // of the host, online
  bool completion_only = false;                 // as configured
  AnalysisSettings settings;
  /// Of the host, or of a few devices: each has its turn every minute.
  std::vector<model::RecordedSettings> settings_read;
  /// What was published a second ago; null at first. This is where a stage finds what other stages reported.
  std::shared_ptr<const model::Snapshot> before;
};

/// Gives each device the drive that it is a namespace of: the one place where the two are joined.
void join_drives(Tick& tick);

}  // namespace ssdpulse::stages
