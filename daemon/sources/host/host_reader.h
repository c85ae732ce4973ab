// SPDX-License-Identifier: Apache-2.0
// HostReader: reads what the kernel says about I/O that waits above the drives, once a second: a few small files, a
// bounded number of them. Needs no privilege. File systems are not asked: see room_watch.h. Owned by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/model/device.h"
#include "daemon/model/host_signals.h"

namespace ssdpulse::host {

struct HostRoots {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string cgroups = {};     // where the hierarchy is mounted that I/O is charged to; empty: none
  bool cgroups_unified = true;  // it is v2's
};

class HostReader {
 public:
  static constexpr std::size_t kMaxCgroups = 256;     // whose limits and pressure are read
  static constexpr std::size_t kMaxLimits = 1024;     // then no more cgroups' are kept
  static constexpr std::size_t kSearchedAtOnce = 32;  // of those that had no limit: in turn, if there are more

  explicit HostReader(HostRoots roots) : roots_(std::move(roots)) {}

  /// The tenant of a cgroup, by its path from the root of the hierarchy.
  using TenantOf = std::function<std::string(const std::string& cgroup)>;
  /// `cgroups`: paths of those that have sent I/O.
  model::HostSignals read(const model::Inventory& inventory, const std::set<std::string>& cgroups,
                          const TenantOf& tenant_of);

 private:
  void read_cgroups(const model::Inventory& inventory, const std::set<std::string>& cgroups, const TenantOf& tenant_of,
                    model::HostSignals& signals);
  [[nodiscard]] std::vector<model::IoLimit> limits_of(const std::string& cgroup,
                                                      const model::Inventory& inventory) const;

  void read_disks(const model::Inventory& inventory);

  struct Disk {
    std::uint64_t busy_ms = 0;
    std::uint64_t done = 0;
    std::uint64_t in_flight = 0;
  };

  HostRoots roots_;
  std::map<std::string, Disk> disks_;  // as they were at the last reading
  std::chrono::steady_clock::time_point disks_read_at_ = std::chrono::steady_clock::now();
  double disks_busy_seconds_ = 0;
  std::uint64_t reads_ = 0;
  std::set<std::string> limited_;  // cgroups that had a limit at the last search
};

/// The kernel's texts. What is not understood is left out.
std::optional<model::IoPressure> parse_pressure(const std::string& text);
std::optional<model::DirtyPages> parse_vmstat(const std::string& text, std::uint64_t page_bytes);

}  // namespace ssdpulse::host
