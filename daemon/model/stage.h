// SPDX-License-Identifier: Apache-2.0
// Tick: what one second showed: all that the analyses examine, collected at one moment and never changed afterwards.
// Stage: an analysis that the daemon runs once a second on one Tick. PerDevice: what a stage remembers about each
// device.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/base/log.h"
#include "daemon/base/result.h"
#include "daemon/model/device.h"
#include "daemon/model/history_rows.h"
#include "daemon/model/host_settings.h"
#include "daemon/model/host_signals.h"
#include "daemon/model/nvme_drive.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/source_samples.h"
#include "daemon/model/write_details.h"

namespace ssdpulse::model {

/// Our counts of a device before and after the kernel's own, read in this order.
struct AccountReading {
  DeviceSample ours_before;
  DiskStats kernel_before;
  DiskStats kernel_after;
  DeviceSample ours_after;
};

struct DeviceTick {
  DeviceSample block;
  std::uint64_t kernel_account = 0;            // which account of the kernel's; another after that restarted; 0: none
  std::optional<AccountReading> account = {};  // only every few ticks
  AccountingDrift drift = {};                  // our counts minus the kernel's, as of the last comparison that counted
  std::optional<KernelInFlight> kernel_in_flight = {};  // see model::DeviceSnapshot
  std::shared_ptr<const NvmeDrive> drive = {};          // the one that it is a namespace of; null: none
  const NvmeNamespace* drive_namespace = nullptr;       // the one of `drive` that it is
  std::shared_ptr<const DeviceKey> history_key = {};    // see HistoryKeys
  std::shared_ptr<const DeviceInterval> interval = {};  // since the tick before; null: not known; see Intervals
};

/// What the analyses need from the configuration; it may change at the next tick.
struct AnalysisSettings {
  std::chrono::nanoseconds discard_gap{std::chrono::seconds(1)};       // silence that ends a burst
  std::chrono::nanoseconds spike_floor{std::chrono::milliseconds(2)};  // anything faster is no spike
  std::size_t max_tenants = 64;                                        // that have series of their own on a device
  double cpu_limit = 0;  // share of all CPUs' time, for the programs in the kernel; 0: no limit
  std::chrono::nanoseconds limit_after{std::chrono::minutes(1)};  // time above it until something is left out
};

struct Tick {
  bool last = false;  // the daemon is ending: what is to be kept must be returned now
  SteadyTime at;      // the two clocks, when the block layer had been read
  WallTime wall;
  std::chrono::nanoseconds boot{};  // the same moment on CLOCK_BOOTTIME
  std::shared_ptr<const Inventory> inventory;
  std::vector<DeviceTick> devices;                       // measured ones, sorted by name
  std::map<std::string, DiscardSubmitters> discards;     // this, cgroups, flash and losses: see BlockSample
  std::vector<std::shared_ptr<const BioIo>> bios = {};   // see BlockSample, as the next
  std::map<std::string, VolumeDrift> volume_drift = {};  // by volume
  std::vector<std::string> volumes_left_out = {};
  std::shared_ptr<const SeenCgroups> cgroups = {};
  std::vector<CgroupId> cgroups_gone = {};      // those whose directory no longer exists; sorted
  std::shared_ptr<const Tenants> tenants = {};  // the owners of those cgroups; null: names are off
  IoAccounting io_accounting = IoAccounting::unknown;
  std::shared_ptr<const HostSignals> host = {};  // null: not read
  std::shared_ptr<const FlashSamples> flash;
  std::array<std::uint64_t, kHostLosses> losses{};
  std::uint64_t diskless_requests = 0;                  // see model::Snapshot
  std::vector<DriveTick> drives;                        // sorted by controller
  bool keeps_history = true;                            // otherwise no drive has a past
  std::map<std::string, util::Result<Recalled>> pasts;  // that were asked for, by the key of their drive
  HintReach hint_reach = HintReach::dropped;            // how far this kernel carries write hints
  std::vector<ProgramStats> programs;
  std::optional<RunCost> run_cost = {};  // of those programs; absent: unknown
  std::optional<CpuTimes> own_cpu = {};  // since the daemon's start; only every few ticks
  unsigned cpus = 1;                     // of the host, online
  bool completion_only = false;          // as configured
  AnalysisSettings settings;
  /// Of the host, or of a few devices: each has its turn every minute.
  std::vector<RecordedSettings> settings_read;
  /// What was published a second ago; null at first. This is where a stage finds what other stages reported.
  std::shared_ptr<const Snapshot> before;
};

/// Gives each device the drive that it is a namespace of: only here are the two joined.
inline void join_drives(Tick& tick) {
  std::map<std::string, std::pair<std::shared_ptr<const NvmeDrive>, const NvmeNamespace*>> by_device;
  for (const DriveTick& drive_tick : tick.drives) {
    for (const NvmeNamespace& entry : drive_tick.drive->identity->namespaces) {
      by_device[entry.device] = {drive_tick.drive, &entry};
    }
  }
  for (DeviceTick& device : tick.devices) {
    if (const auto found = by_device.find(device.block.device->name); found != by_device.end()) {
      std::tie(device.drive, device.drive_namespace) = found->second;
    }
  }
}

/// A request for the past of a drive. Once it has been read, it is in Tick::pasts under `key`.
struct Recall {
  std::string key;  // of DriveTick
  DriveKey drive;
  Minute since;
};

/// What the runtime is to do.
struct Effects {
  std::vector<log::Line> lines;
  Batch rows;
  std::vector<Recall> recalls;
  std::vector<std::string> read_counters_again;  // keys of drives whose newest reading needs another to confirm it
  std::vector<std::string> poll_soon;            // controllers of drives whose log pages would show more if read now
  /// What the drives themselves prefer, by device; absent: as before.
  std::optional<std::map<std::string, WritePreference>> write_preferences;
  std::optional<Effort> effort;  // from now on; absent: as before
};

struct Findings {
  /// Puts the values into the Snapshot of the Tick, which has the same devices in the same order. May be empty.
  std::function<void(Snapshot&)> values;
  Effects effects = {};
};

/// An analysis that the daemon runs once a second on one Tick. It returns what it found: values for the Snapshot, and
/// effects, which only the runtime carries out. Pure except for what it remembers: no I/O, no clock. Stages do not know
/// about each other, and their order does not matter: what others reported is in Tick::before. Owned by one thread.
///
/// A new analysis is one class and one line in all_stages.cpp: see deploy/docs/contributing.md.
class Stage {
 public:
  Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  virtual ~Stage() = default;

  /// Once for each tick.
  virtual Findings observe(const Tick& tick) = 0;
};

/// What a stage remembers about each device: one State while its counters go on. The State is dropped with the device,
/// and another device of the same name gets a new one. A State is constructed from nothing, or from the name of its
/// device.
template <typename State>
class PerDevice {
 public:
  /// Calls visit(number, device, state) for each device of the tick.
  template <typename Visit>
  void observe(const Tick& tick, Visit visit) {
    std::map<std::string, Entry> before = std::exchange(kept_, {});
    for (std::size_t number = 0; number < tick.devices.size(); ++number) {
      const DeviceTick& device = tick.devices[number];
      const std::string& name = device.block.device->name;
      auto known = before.extract(name);
      const bool same = !known.empty() && is_same(known.mapped(), device);
      Entry& kept = (same ? kept_.insert(std::move(known)).position : kept_.emplace(name, make(name)).first)->second;
      if (device.block.io) {
        kept.since = device.block.io->since;
      }
      visit(number, device, kept.state);
    }
  }

  /// The state of a device of the last tick; null if it was not in it.
  [[nodiscard]] const State* find(const std::string& device) const {
    const auto found = kept_.find(device);
    return found == kept_.end() ? nullptr : &found->second.state;
  }

 private:
  struct Entry {
    State state;
    std::optional<WallTime> since = {};  // of the counters; absent while there are none
  };
  static bool is_same(const Entry& kept, const DeviceTick& now) {
    return !kept.since || !now.block.io || kept.since == now.block.io->since;
  }
  static Entry make(const std::string& name) {
    if constexpr (std::is_constructible_v<State, std::string>) {
      return Entry{State(name)};
    } else {
      return Entry{State{}};
    }
  }

  std::map<std::string, Entry> kept_;
};

}  // namespace ssdpulse::model
