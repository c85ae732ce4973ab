// SPDX-License-Identifier: Apache-2.0
// DeviceAttribution: the I/O of one device by cgroup, and by the path on which it entered the kernel. DeviceTenants:
// the same by tenant, as its users call a cgroup: a unit of systemd, a container, a virtual machine, a user. The block
// source counts by cgroup, a stage turns cgroups into tenants. Values only.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/base/outside_text.h"
#include "daemon/model/block_io.h"

namespace ssdpulse::model {

/// How an I/O was submitted. `direct`: by O_DIRECT, but this kernel does not show which engine. `other`: in an unknown
/// way; never a guess.
enum class IoPath : std::uint8_t {
  io_uring,
  sqpoll,
  libaio,
  sync,
  direct,
  buffered_read,
  writeback,
  journal,
  metadata,
  swap,
  loop,
  stacked,
  other
};
inline constexpr std::size_t kIoPaths = util::count_of<IoPath>();
inline constexpr auto kIoPathNames =
    util::names<IoPath>({"io_uring", "sqpoll", "libaio", "sync", "direct", "buffered_read", "writeback", "journal",
                         "metadata", "swap", "loop", "stacked", "other"});

/// To a file system (its files and its own data), or to the block device itself, through its page cache or not.
/// Whatever is not known to go to the device itself is `file`. The path of a discard cannot be determined: all are
/// `other`, `file`.
enum class IoAccess : std::uint8_t { file, raw };
inline constexpr std::size_t kIoAccesses = util::count_of<IoAccess>();
inline constexpr auto kIoAccessNames = util::names<IoAccess>({"file", "raw"});

/// Cumulative. Strays, whose issue was not seen, are in ios and bytes and have no device time.
struct AttributedTotals {
  std::uint64_t ios = 0;  // final completions
  std::uint64_t bytes = 0;
  std::uint64_t device_ns = 0;  // last issue to final completion; always 0 in completion-only mode

  AttributedTotals& operator+=(const AttributedTotals& more) {
    ios += more.ios;
    bytes += more.bytes;
    device_ns += more.device_ns;
    return *this;
  }
  AttributedTotals& operator-=(const AttributedTotals& less) {
    ios -= less.ios;
    bytes -= less.bytes;
    device_ns -= less.device_ns;
    return *this;
  }
  bool operator==(const AttributedTotals&) const = default;
};
using TotalsByOperation = ByOperation<AttributedTotals, kAttributedOperations>;

/// The kernel's identity of a cgroup: kernfs_node.id, which is the inode of its directory. Never reused while the host
/// is up.
using CgroupId = std::uint64_t;
inline constexpr CgroupId kNoCgroup = 0;  // requests without one: no bio, or a kernel without CONFIG_BLK_CGROUP

/// A cgroup that has sent I/O, as the kernel side saw it at its first I/O.
struct SeenCgroup {
  CgroupId parent = kNoCgroup;
  util::OutsideText leaf;  // the directory's name, empty for the root; any bytes but '/', at most 255
};

/// The I/O of one device. For each operation, the sums over `cgroups`, `departed` and `other` equal those over `paths`
/// in every reading: all come from the same cells.
struct DeviceAttribution {
  std::map<CgroupId, TotalsByOperation> cgroups;  // commits too, below
  TotalsByOperation departed{};                   // of cgroups that were released since the start
  TotalsByOperation other{};                      // of cgroups without a slot: counted, never computed as a remainder
  std::array<std::array<TotalsByOperation, kIoAccesses>, kIoPaths> paths{};
  std::map<CgroupId, std::uint64_t> commits;  // flush sequences' parents and FUA writes that ended, by cgroup
  std::uint64_t departed_commits = 0;
  std::uint64_t other_commits = 0;
};

/// Cgroups by identity, for all devices together.
using SeenCgroups = std::map<CgroupId, SeenCgroup>;

/// What kind of thing a cgroup stands for. `configured`: a pattern of the configuration matched. `cgroup`: none of the
/// known kinds. `none`: requests without a cgroup.
enum class TenantKind : std::uint8_t { root, unit, slice, container, pod, vm, user, job, configured, cgroup, none };
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

/// Begins the path of a cgroup whose place is not known: no directory at the top of the host's hierarchy has this name.
inline constexpr std::string_view kUnknownParent = "/?";

/// Paths of the cgroups that have sent I/O, from the root of their hierarchy. Absent: not known yet.
using CgroupPaths = std::map<CgroupId, util::OutsideText>;

/// By cgroup: the owners of cgroups that have sent I/O and are not forgotten yet. Empty without names
/// (config::TenantNames::off).
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

/// What sentences and tables for people call a tenant; where programs read it, it keeps its name. "/" means nothing to
/// them: most of the root's I/O is that of units without I/O accounting.
inline std::string tenant_title(std::string_view name) {
  return name == kRootTenant ? "the system (units without I/O accounting)" : std::string(name);
}

}  // namespace ssdpulse::model
