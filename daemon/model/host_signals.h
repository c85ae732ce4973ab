// SPDX-License-Identifier: Apache-2.0
// HostSignals: what the kernel reports about I/O that waits above the drives: pressure, limits of cgroups, suspended
// and resyncing volumes, dirty pages, room in file systems. HostWait: what of it holds up a tenant or the host.
// kHostWaitCauseTable: one entry for each cause, with all texts about it except its sentence, which has figures in it
// (daemon/spikes/host_wait_words.cpp); an entry that lacks a part does not compile. Values only.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/base/outside_text.h"
#include "daemon/model/block_io.h"  // index(), name()

namespace ssdpulse::model {

enum class HostWaitCause : std::uint8_t {
  suspended,         // a dm volume is suspended
  frozen,            // a file system is frozen
  full,              // a file system has no room left
  cgroup_limit,      // a cgroup is at its limit
  layer,             // a layer above the drives (LVM, LUKS, md) has become slow by itself
  dirty_throttling,  // the kernel holds up whoever writes, until dirty pages are on the drives
  pressure,          // tasks wait for I/O, and nothing that is measured explains it
};
inline constexpr std::size_t kHostWaitCauses = util::count_of<HostWaitCause>();

struct HostWaitCauseInfo {
  HostWaitCause cause;
  util::Text name;      // in metrics, the history and the API: a contract
  util::Text next;      // what to do
  util::Text shown_by;  // when it is claimed, in Markdown
};

/// In the order of the enumeration.
inline constexpr auto kHostWaitCauseTable = std::to_array<HostWaitCauseInfo>({
    {.cause = HostWaitCause::suspended,
     .name = "suspended",
     .next = "Find out who suspended it (snapshots, pvmove and lvresize do, for moments). If none of these is running, "
             "resume it: dmsetup resume NAME.",
     .shown_by = "`/sys/block/dm-N/dm/suspended` is 1 for two seconds, and it was not when the daemon first saw "
                 "it, or tasks wait for I/O 30 % of the time more than drives explain. The file system on it is "
                 "usually frozen, too, and the kernel does not count those that write there as waiting"},
    {.cause = HostWaitCause::frozen,
     .name = "frozen",
     .next = "Find out whether a backup or a snapshot is under way (fsfreeze, a guest agent, LVM). If not, thaw "
             "it: fsfreeze --unfreeze MOUNTPOINT.",
     .shown_by = "a freeze was seen since the daemon's start (hooks on `freeze_super` and `thaw_super_locked`), "
                 "and no volume below it is suspended. The command is that of the task that froze it. Not seen: "
                 "freezes from before the daemon's start, of file systems that are mounted only in other mount "
                 "namespaces or not on a disk of this host, and any on kernels that let no function be hooked "
                 "(`ssdpulse doctor` says so). After a change that was lost "
                 "(`ssdpulse_lost_events_total{cause=\"freeze_events\"}`), none is claimed that was seen before"},
    {.cause = HostWaitCause::full,
     .name = "full",
     .next = "Free up space or extend it; df -h and df -i show what is left.",
     .shown_by = "1 MiB or less (a hundredth of a small file system) or no inode is left, where there was more "
                 "while the daemon watched. Asked every 2 s, by a thread that may hang; never of network and FUSE "
                 "mounts"},
    {.cause = HostWaitCause::cgroup_limit,
     .name = "cgroup_limit",
     .next = "Raise the limit (systemctl set-property --runtime UNIT 'IOReadBandwidthMax=/dev/DEVICE 500M', and the "
             "like; an empty value removes it), or send less.",
     .shown_by = "over 3 s, what the kernel counts against the limit (`io.stat`; v1: `blkio.throttle.io_serviced`) "
                 "is 95 to 150 % of it, tasks of the cgroup wait 30 % of the time or more (v1: tasks of the host, "
                 "more than drives explain), and the drive has no incident. Who is held up is the only tenant "
                 "below the limit; of several, it is said of whom the limit is set on. Linux 5.10 does not count "
                 "I/O that comes through a dm or md device for the disk below: there, a limit on that disk is not "
                 "claimed. `io.latency` and io.cost have no rate to compare with, and are never claimed"},
    {.cause = HostWaitCause::layer,
     .name = "layer",
     .next =
         "See what it does: dmsetup table and dmsetup status, or /proc/mdstat. Where it is crypt, see whether the CPUs "
         "are busy (kcryptd in top).",
     .shown_by =
         "in two intervals of 5 s, with at most one between them in which few I/Os ended or a drive had a spike, the "
         "layer itself, not what it lies on, took at least 1 ms of the mean "
         "time of a bio, half of it, and 4 times what is usual for bios of that size; after an hour that is "
         "usual. Only of layers that pass each bio on as it is, where those below were seen and timed, and "
         "nothing was seen that may hold them up on their way: a spike of a drive below (of reads only if the layer "
         "adds at most three times its peak and its longest standstill, if I/Os failed or were sent again, or below "
         "mirrors and verity), a full queue, for writes a drive that is 90 % busy, a limit, a suspended volume. Never "
         "of writes of LUKS and of dm devices other than LVM, which a thread of their own sends on, nor of fewer than "
         "20 I/Os in 5 s ([volumes](volumes.md))"},
    {.cause = HostWaitCause::dirty_throttling,
     .name = "dirty_throttling",
     .next = "Limit whoever writes most, or let the kernel write back earlier (vm.dirty_background_bytes).",
     .shown_by = "dirty pages and those under write-back reach the middle between the two thresholds of "
                 "`/proc/vmstat`, from which on the kernel makes writers wait, and tasks wait 30 % of the time or "
                 "more. Limits of a memory cgroup are not seen"},
    {.cause = HostWaitCause::pressure,
     .name = "pressure",
     .next = "See what tasks in state D wait for (ps -eo stat,wchan:32,comm), and check network file systems, "
             "swap, and disks that are not measured (ssdpulse devices).",
     .shown_by = "tasks wait 50 % of the time more than drives explain, beyond what is usual here over 10 minutes, "
                 "no drive has an incident, and none of the above holds; after an hour it is usual"},
});

static_assert(util::is_table_of<HostWaitCause>(kHostWaitCauseTable, &HostWaitCauseInfo::cause),
              "each cause has one entry, in the order of the enumeration");

inline constexpr auto kHostWaitCauseNames = util::column(kHostWaitCauseTable, &HostWaitCauseInfo::name);

constexpr const HostWaitCauseInfo& info(HostWaitCause cause) { return kHostWaitCauseTable[index(cause)]; }

/// Pressure stall information (Documentation/accounting/psi.rst): cumulative, in seconds.
struct IoPressure {
  double some_seconds = 0;  // in which at least one task waited for I/O
  double full_seconds = 0;  // in which all tasks that were not idle did
};

/// Of the whole host, from /proc/vmstat. The kernel holds up whoever writes from halfway between both thresholds on.
struct DirtyPages {
  std::uint64_t bytes = 0;                       // dirty, and under write-back
  std::uint64_t threshold_bytes = 0;             // nr_dirty_threshold
  std::uint64_t background_threshold_bytes = 0;  // beyond which the kernel writes back
};

struct CgroupPressure {
  util::OutsideText cgroup;  // path from the root of the hierarchy; not to be shown: names may be hidden
  std::string tenant;        // that it belongs to
  IoPressure pressure;
};

/// As io.max names them.
enum class IoLimitKind : std::uint8_t { rbps, wbps, riops, wiops };
inline constexpr std::size_t kIoLimitKinds = util::count_of<IoLimitKind>();
inline constexpr auto kIoLimitKindNames = util::names<IoLimitKind>({"rbps", "wbps", "riops", "wiops"});

/// A limit of a cgroup on one block device, and what the kernel itself has counted against it.
struct IoLimit {
  util::OutsideText cgroup;  // that it is set on, as of CgroupPressure
  std::string tenant;        // the name under which that may be shown
  std::string device;        // the kernel's name; MAJOR:MINOR if there is no such disk
  IoLimitKind kind = IoLimitKind::rbps;
  std::uint64_t per_second = 0;        // bytes or I/Os
  std::optional<std::uint64_t> done;   // cumulative, of the cgroup and all below it; absent: not counted
  std::optional<IoPressure> pressure;  // of the cgroup and all below it; absent: v1, or not kept
  std::string file;                    // io.max, blkio.throttle.write_iops_device, ...
};

/// A check, rebuild or reshape of an md array.
struct Resync {
  std::string action;                    // as in md/sync_action: check, resync, recover, reshape, repair
  std::optional<double> progress_ratio;  // 0..1
  std::optional<std::uint64_t> bytes_per_second;
};

/// The health of an md or dm device, as sysfs has it.
struct VolumeSignals {
  std::string volume;  // the kernel's name
  bool suspended = false;
  std::optional<Resync> resync;
  std::string state = {};                             // md/array_state; empty: unknown, or of dm
  std::optional<std::uint64_t> missing_members = {};  // of an array with redundancy
  std::string consistency_policy = {};                // of md: resync, bitmap, journal, ppl
};

/// Of a file system on a measured disk, as statfs(2) has it. What unprivileged programs may use.
struct FilesystemRoom {
  util::OutsideText mountpoint;
  std::uint64_t size_bytes = 0;
  std::uint64_t available_bytes = 0;
  std::uint64_t inodes = 0;  // 0: the file system has no fixed number
  std::uint64_t available_inodes = 0;
  std::uint64_t free_bytes = 0;  // with the bytes that only root may use
  bool operator==(const FilesystemRoom&) const = default;
};

/// Was seen being frozen: whoever writes to it sleeps until it is thawed (fsfreeze(8)).
struct FrozenFilesystem {
  util::OutsideText mountpoint;
  util::OutsideText command;              // that froze it, or is about to
  std::vector<std::string> volumes = {};  // directly below it
};

/// One reading. What is absent could not be read: the kernel lacks it, or this process may not.
struct HostSignals {
  std::optional<IoPressure> pressure = {};
  std::optional<std::uint64_t> blocked_tasks = {};  // that wait for I/O (procs_blocked)
  std::optional<DirtyPages> dirty = {};
  /// Of all pages that were ever made dirty, since the boot (nr_dirtied). Not of tmpfs, which is never written back.
  std::optional<std::uint64_t> dirtied_bytes = {};
  /// Cumulative: in which anything was in flight, added up over all disks that are not made of others.
  std::optional<double> cpu_wait_seconds = {};  // in which at least one task waited for a CPU; cumulative
  double disks_busy_seconds = 0;
  std::map<std::string, std::uint64_t> disks_busy_ms = {};  // of each of those, by name (io_ticks)
  std::optional<bool> cgroups_unified = {};  // the hierarchy that I/O is charged to is v2's; absent: there is none
  std::vector<CgroupPressure> cgroups = {};  // of cgroups that have sent I/O
  std::vector<IoLimit> limits = {};          // of these cgroups and those above them
  std::vector<VolumeSignals> volumes = {};
  std::vector<FilesystemRoom> rooms = {};
  std::vector<FrozenFilesystem> frozen = {};
};

struct HostWait {
  HostWaitCause cause = HostWaitCause::pressure;
  util::OutsideText subject;  // a volume, a mount point or whom a limit is set on; empty: the host
  std::string device;         // that the limit is for, or the layer's own; empty: none
  std::string tenant;         // who is held up; empty: not known
  std::chrono::system_clock::time_point begin;
  std::chrono::nanoseconds duration{};  // from the first proof to the last, by a clock that is never set
  bool over = false;
  std::map<std::string, double> evidence = {};  // by name with its unit, as it was last
  std::string file = {};                        // of the kernel, or its function, that says so
  util::OutsideText command = {};               // whose doing it is; empty: not known
};

inline std::chrono::system_clock::time_point end_of(const HostWait& wait) {
  return wait.begin + std::chrono::duration_cast<std::chrono::system_clock::duration>(wait.duration);
}

/// Waits and signals, as published.
struct HostFigures {
  std::shared_ptr<const HostSignals> signals;          // null: none were read yet
  std::vector<HostWait> waits = {};                    // ongoing, or ended since the last snapshot
  std::array<std::uint64_t, kHostWaitCauses> count{};  // waits that began since the start; the next likewise
  std::array<double, kHostWaitCauses> seconds{};       // that they lasted
  /// In which a task of the tenant waited for I/O: of several cgroups, of the one that waited longest in each second.
  std::map<std::string, double> tenant_pressure_seconds = {};
  std::map<util::OutsideText, double> filling_bytes_per_second = {};  // file systems that fill, by mount point
};

/// Null if it is not known.
inline const FilesystemRoom* room_of(const HostFigures& host, const util::OutsideText& mountpoint) {
  if (!host.signals) {
    return nullptr;
  }
  const auto& rooms = host.signals->rooms;
  const auto found =
      std::find_if(rooms.begin(), rooms.end(), [&](const auto& room) { return room.mountpoint == mountpoint; });
  return found == rooms.end() ? nullptr : &*found;
}

/// At the current rate; nothing if it does not fill.
inline std::optional<double> seconds_until_full(const HostFigures& host, const FilesystemRoom& room) {
  const auto rate = host.filling_bytes_per_second.find(room.mountpoint);
  return rate == host.filling_bytes_per_second.end()
             ? std::nullopt
             : std::optional(static_cast<double>(room.available_bytes) / rate->second);
}

}  // namespace ssdpulse::model
