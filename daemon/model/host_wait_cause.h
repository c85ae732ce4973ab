// SPDX-License-Identifier: Apache-2.0
// What holds up I/O above the drives: one entry for each cause, with what is said about it. An entry that lacks a part
// does not compile. Its sentence has figures in it, and is a case of live/host_wait_words.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "daemon/model/operation.h"  // index(), name()
#include "daemon/util/complete.h"

namespace ssdpulse::model {

enum class HostWaitCause : std::uint8_t {
  suspended,         // a dm volume is suspended
  frozen,            // a file system is frozen
  full,              // a file system has no room left
  cgroup_limit,      // a cgroup is at its limit
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
inline constexpr std::array kHostWaitCauseTable{
    HostWaitCauseInfo{
        .cause = HostWaitCause::suspended,
        .name = "suspended",
        .next = "Find out who suspended it (snapshots, pvmove and lvresize do, for moments); if nobody is at work, "
                "resume it: dmsetup resume NAME.",
        .shown_by = "`/sys/block/dm-N/dm/suspended` is 1 for two seconds, and it was not when the daemon first saw "
                    "it, or tasks wait for I/O 30 % of the time more than drives explain. The file system on it is "
                    "usually frozen, too, and the kernel does not count those that write there as waiting"},
    HostWaitCauseInfo{
        .cause = HostWaitCause::frozen,
        .name = "frozen",
        .next = "Find out whether a backup or a snapshot is under way (fsfreeze, a guest agent, LVM); if nobody is at "
                "work, thaw it: fsfreeze --unfreeze MOUNTPOINT.",
        .shown_by = "a freeze was seen since the daemon's start (hooks on `freeze_super` and `thaw_super_locked`), "
                    "and no volume below it is suspended. The command is that of the task that froze it. Not seen: "
                    "freezes from before the daemon's start, of file systems that are mounted only in other mount "
                    "namespaces or not on a disk of this host, and any on kernels that let no function be hooked "
                    "(`ssdpulse doctor` says so). After a change that was lost "
                    "(`ssdpulse_lost_events_total{cause=\"freeze_events\"}`), none is claimed that was seen before"},
    HostWaitCauseInfo{
        .cause = HostWaitCause::full,
        .name = "full",
        .next = "Free up space or extend it; df -h and df -i show what is left.",
        .shown_by = "1 MiB or less (a hundredth of a small file system) or no inode is left, where there was more "
                    "while the daemon watched. Asked every 2 s, by a thread that may hang; never of network and FUSE "
                    "mounts"},
    HostWaitCauseInfo{
        .cause = HostWaitCause::cgroup_limit,
        .name = "cgroup_limit",
        .next = "Raise the limit (systemctl set-property UNIT IOReadBandwidthMax=, IOWriteIOPSMax= ...), or send "
                "less.",
        .shown_by = "over 3 s, what the kernel counts against the limit (`io.stat`; v1: `blkio.throttle.io_serviced`) "
                    "is 95 to 150 % of it, tasks of the cgroup wait 30 % of the time or more (v1: tasks of the host, "
                    "more than drives explain), and the drive has no incident. Who is held up is the only tenant "
                    "below the limit; of several, it is said of whom the limit is set on. Linux 5.10 does not count "
                    "I/O that comes through a dm or md device for the disk below: there, a limit on that disk is not "
                    "claimed. `io.latency` and io.cost have no rate to compare with, and are never claimed"},
    HostWaitCauseInfo{
        .cause = HostWaitCause::dirty_throttling,
        .name = "dirty_throttling",
        .next = "Limit whoever writes most, or let the kernel write back earlier (vm.dirty_background_bytes).",
        .shown_by = "dirty pages and those under write-back reach the middle between the two thresholds of "
                    "`/proc/vmstat`, from which on the kernel makes writers wait, and tasks wait 30 % of the time or "
                    "more. Limits of a memory cgroup are not seen"},
    HostWaitCauseInfo{
        .cause = HostWaitCause::pressure,
        .name = "pressure",
        .next = "See what tasks in state D wait for (ps -eo stat,wchan:32,comm), and check network file systems, "
                "swap, and disks that are not measured (ssdpulse devices).",
        .shown_by = "tasks wait 50 % of the time more than drives explain, beyond what is usual here over 10 minutes, "
                    "no drive has an incident, and none of the above holds; after an hour it is usual"},
};

static_assert(util::is_table_of<HostWaitCause>(kHostWaitCauseTable, &HostWaitCauseInfo::cause),
              "each cause has one entry, in the order of the enumeration");

inline constexpr auto kHostWaitCauseNames = util::column(kHostWaitCauseTable, &HostWaitCauseInfo::name);

constexpr const HostWaitCauseInfo& info(HostWaitCause cause) { return kHostWaitCauseTable[index(cause)]; }

}  // namespace ssdpulse::model
