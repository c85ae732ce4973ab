// SPDX-License-Identifier: Apache-2.0
// DiskDecision, switch_effort(): which disks the kernel side measures, under which index, and how much it does for
// each. Written to the mapped control tables of bpf/abi/block_abi.h, which needs no privilege: the kernel only looks
// up.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bpf/abi/block_abi.h"
#include "daemon/model/kernel_programs.h"

namespace ssdpulse::block {

/// One line of the table: a disk by the kernel's name and incarnation.
struct DiskDecision {
  std::string disk_name;
  std::uint64_t identity = 0;              // diskseq, or 0 for any incarnation
  std::uint32_t device = DEVICE_EXCLUDED;  // index + 1, DEVICE_EXCLUDED or DEVICE_WITHOUT_ROW
  bool retiring = false;                   // gone: nothing new is looked up, but what is in flight may still end
  bool operator==(const DiskDecision&) const = default;
};

/// Makes all queues forget this device (index + 1), whose row is given to another disk. Call it when the new geometry
/// has been written: a queue that adopts the device from then on copies that.
void forget_queues_of(__u32 device, std::span<queue_entry> queue_entries);

/// Keeps queues from finding this device (index + 1), before its row is given to another disk.
void close_entries_of(__u32 device, std::span<known_disk> table);

/// Rewrites the table where it differs, and forgets cached decisions of queues that no longer agree with it.
/// `table` and `queue_entries` are the mapped kernel tables. Returns how many disks found no row (the table is full,
/// or the neighbourhood of their name is): they stay unmeasured and are counted by the kernel as pending.
std::size_t publish_decisions(const std::vector<DiskDecision>& decisions, std::span<known_disk> table,
                              std::span<queue_entry> queue_entries);

/// CLOCK_MONOTONIC in nanoseconds, as the programs read it.
std::uint64_t monotonic_ns();

/// Makes the programs do more or less on one device. Requests in flight meanwhile are neither lost nor counted twice:
/// those issued before end with their device time, and those whose issue was not seen end as untimed. Detaching is up
/// to the caller. `now_ns`: for tests.
void switch_effort(model::Effort effort, device_state& state, std::uint64_t (*now_ns)() = monotonic_ns);

}  // namespace ssdpulse::block
