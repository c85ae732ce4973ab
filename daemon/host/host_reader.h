// SPDX-License-Identifier: Apache-2.0
// RoomWatch, HostReader: how much room is left in file systems, and what the kernel says about I/O that waits above the
// drives.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/host/disk_stats.h"
#include "daemon/model/clock.h"
#include "daemon/model/device.h"
#include "daemon/model/host_signals.h"

namespace ssdpulse::host {

/// Asks the kernel. Nothing for what is not the root of a mount here (a confined process may see other mounts than the
/// host), for what is read-only or has no size, and if it may not be asked.
std::optional<model::FilesystemRoom> room_of(const std::string& mountpoint);

/// Asks file systems with statfs(2) every kInterval, on a thread of its own, as one may not answer for as long as its
/// drive hangs. That one is then left out until it does, and another thread asks the others. latest() never waits.
/// Owned by one thread.
class RoomWatch {
 public:
  static constexpr std::chrono::seconds kInterval{2};
  static constexpr std::chrono::seconds kLongestAge{10};  // an answer that is no longer given out
  static constexpr std::size_t kMaxMounts = 256;          // asked
  static constexpr std::size_t kMaxThreads = 8;  // that wait for an answer; then nobody is asked until one has it

  /// `ask` is called by threads that may outlive this.
  using Ask = std::optional<model::FilesystemRoom> (*)(const std::string& mountpoint);
  explicit RoomWatch(Ask ask = room_of);

  /// The newest answers of these file systems, in their order. They are also asked from now on: they must be local.
  std::vector<model::FilesystemRoom> latest(const std::vector<std::string>& mountpoints, model::SteadyTime now);

 private:
  struct Answers;
  Ask ask_;
  std::shared_ptr<Answers> answers_;
  std::optional<model::SteadyTime> asked_at_;
};

struct HostRoots {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string cgroups = {};     // where the hierarchy is mounted that I/O is charged to; empty: none
  bool cgroups_unified = true;  // it is v2's
};

/// Reads a few small files once a second, a bounded number of them. Needs no privilege, and asks no file system. Owned
/// by one thread.
class HostReader {
 public:
  static constexpr std::size_t kMaxCgroups = 256;     // whose limits and pressure are read
  static constexpr std::size_t kMaxLimits = 1024;     // then no more cgroups' are kept
  static constexpr std::size_t kSearchedAtOnce = 32;  // of those that had no limit: in turn, if there are more

  static constexpr std::size_t kTurnsOfHealth = 5;    // of what changes seldom, each reads a part of the volumes
  static constexpr std::size_t kVolumesAtOnce = 100;  // of more, all but those that wait are read in turn

  explicit HostReader(HostRoots roots) : roots_(std::move(roots)) {}

  /// The tenant of a cgroup, by its path from the root of the hierarchy.
  using TenantOf = std::function<std::string(const std::string& cgroup)>;
  /// `cgroups`: paths of those that have sent I/O. `waiting`: volumes that may be suspended, for nothing on them ends.
  model::HostSignals read(const model::Inventory& inventory, const std::set<std::string>& cgroups,
                          const TenantOf& tenant_of, const std::set<std::string>& waiting = {});
  /// As of the last reading.
  [[nodiscard]] const AllDiskStats& disk_stats() const { return disk_stats_; }

 private:
  void read_cgroups(const model::Inventory& inventory, const std::set<std::string>& cgroups, const TenantOf& tenant_of,
                    model::HostSignals& signals);
  [[nodiscard]] std::vector<model::IoLimit> limits_of(const std::string& cgroup,
                                                      const model::Inventory& inventory) const;
  void read_disks(const model::Inventory& inventory, model::HostSignals& signals);
  std::vector<model::VolumeSignals> read_volumes(const model::Inventory& inventory,
                                                 const std::set<std::string>& waiting);

  HostRoots roots_;
  AllDiskStats disk_stats_;
  std::chrono::steady_clock::time_point disks_read_at_ = std::chrono::steady_clock::now();
  double disks_busy_seconds_ = 0;
  std::uint64_t dirtied_bytes_ = 0;
  std::uint64_t reads_ = 0;
  std::set<std::string> limited_;  // cgroups that had a limit at the last search
  struct KnownVolume {
    model::Layer layer;
    model::VolumeSignals signals;
  };
  std::map<std::string, KnownVolume> volumes_;  // as they were at the last reading
};

/// The kernel's texts. What is not understood is left out.
std::optional<model::IoPressure> parse_pressure(const std::string& text);
/// Of a line of /proc/vmstat that counts pages.
std::optional<std::uint64_t> vmstat_bytes(const std::string& text, const std::string& name, std::uint64_t page_bytes);
std::optional<model::DirtyPages> parse_vmstat(const std::string& text, std::uint64_t page_bytes);

}  // namespace ssdpulse::host
