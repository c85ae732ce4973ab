// SPDX-License-Identifier: Apache-2.0
// Who does the I/O of a host, as people call it: a unit of systemd, a container, a virtual machine, a user.
// Values only: tenants are named by analysis/tenants and counted by a stage.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/attribution.h"
#include "daemon/util/complete.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::model {

/// What kind of thing a cgroup stands for. `configured`: a pattern of the configuration matched. `cgroup`: none of the
/// known kinds. `none`: requests without a cgroup.
enum class TenantKind : std::uint8_t { root, unit, slice, container, pod, vm, user, job, configured, cgroup, none };
inline constexpr std::size_t kTenantKinds = util::count_of<TenantKind>();
inline constexpr auto kTenantKindNames = util::names<TenantKind>(
    {"root", "unit", "slice", "container", "pod", "vm", "user", "job", "configured", "cgroup", "none"});

/// The name of the root's tenant: what no unit, container, machine or user accounts for, and the kernel's own I/O.
inline constexpr std::string_view kRootTenant = "/";

struct Tenant {
  std::string name;  // printable ASCII without blanks, quotes and commas, bounded; a hash where names are hidden
  TenantKind kind = TenantKind::cgroup;
  util::OutsideText cgroup;  // path of the directory that stands for it; empty: none, or a pattern or a hash names it
  bool operator==(const Tenant&) const = default;
};

/// Paths of the cgroups that have sent I/O, from the root of their hierarchy. Absent: not known yet.
using CgroupPaths = std::map<CgroupId, util::OutsideText>;

/// By cgroup: those that have sent I/O and are not forgotten yet. Empty without names (config::TenantNames::off).
using Tenants = std::map<CgroupId, Tenant>;

/// How far this host accounts I/O to cgroups.
enum class IoAccounting : std::uint8_t {
  unknown,    // no hierarchy of cgroups can be read
  root_only,  // nothing below the root: all I/O is that of "/"
  below_root
};

/// One tenant on one device, since it was first seen there, or again after its series had ended.
struct TenantIo {
  Tenant tenant;
  TotalsByOperation totals{};
  std::uint64_t commits = 0;
  std::chrono::system_clock::time_point since;  // created_timestamp of its series
};

/// The I/O of one device: whose it was, and how it entered the kernel. For each operation, the tenants' totals, `other`
/// and `departed` together are the sum over all paths.
struct DeviceTenants {
  std::vector<TenantIo> tenants;  // sorted by name
  TotalsByOperation other{};      // of cgroups for which there was no room, or no name yet
  TotalsByOperation departed{};   // of tenants whose series have ended: grows by a whole total at once
  std::uint64_t other_commits = 0;
  std::array<std::array<TotalsByOperation, kIoAccesses>, kIoPaths> paths{};
  bool named = true;  // false: names are off, and only the paths are known
};

}  // namespace ssdpulse::model
