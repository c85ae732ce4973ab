// SPDX-License-Identifier: Apache-2.0
// MemoryPlan, TableAllocator, Retirement: the sizes of the kernel's tables for this host, and which disk has which part
// of them. No system calls. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "bpf/abi/block_abi.h"
#include "bpf/abi/volume_abi.h"

namespace ssdpulse::block {

/// Slots that one disk needs: hardware queues x tags of each, so that no two requests in flight share one.
struct SlotDemand {
  std::uint32_t hardware_queues = 1;
  std::uint32_t queue_depth = 0;
};

/// The tables of the volume programs: 2 MiB on a host with a few volumes, at most 54 MiB.
struct VolumePlan {
  std::uint32_t rows = 0;     // 0: there is no volume, and nothing is loaded
  std::uint32_t stripes = 1;  // groups of CPUs with cells of their own for reads and writes; a power of two
  std::uint32_t sets = 0;     // of bios in flight; a power of two

  [[nodiscard]] std::uint64_t bytes() const;
};
/// Room for as many rows again as there are, and for 64 at least.
VolumePlan plan_volumes(std::uint32_t present_rows, std::uint32_t possible_cpus);

/// Made once, before the programs are loaded. Budget: cells at most 16 MB at 8 devices x 64 CPUs and 202 MB at 64 x
/// 256; slots at most 16 MiB and 128 MiB. Cells that can be shared are shared: their number is what the budget leaves.
struct MemoryPlan {
  std::uint32_t devices = 0;       // present disks plus rows for new ones, at most kMaxDevices
  std::uint32_t cpus = 0;          // possible CPUs
  std::uint32_t slots = 0;         // of all devices; see slots_for() for one
  std::uint32_t discard_rows = 0;  // volumes whose discards are counted by submitter; 0: none
  std::uint32_t tagged_cells = 1;  // of one device, a power of two: for hints and streams, shared by CPUs
  std::uint32_t commit_cells = 1;  // also shared; one per CPU, where the budget allows it
  // I/O by cgroup and path; see bpf/abi/attribution_abi.h.
  std::uint32_t attribution_sets = 0;    // of one CPU; 0: switched off
  std::uint32_t announcements = 0;       // of one CPU, a power of two
  std::uint32_t unattributed_cells = 0;  // of one device, a power of two, shared by CPUs
  VolumePlan volumes;
  std::uint32_t sample_bytes = 0;  // of the ring buffer of sampled writes, a power of two and whole pages

  [[nodiscard]] std::uint64_t cell_bytes() const;
  [[nodiscard]] std::uint64_t slot_bytes() const;
  [[nodiscard]] std::uint64_t table_bytes() const;  // device states, streams, disks, queues, discards
  [[nodiscard]] std::uint64_t attribution_bytes() const;
  [[nodiscard]] std::uint64_t total_bytes() const {
    return cell_bytes() + slot_bytes() + table_bytes() + attribution_bytes() + sample_bytes + volumes.bytes();
  }
};

/// Largest region of one device: 2 MiB of slots. Beyond that, slots are direct-mapped and collisions are counted.
inline constexpr std::uint32_t kMaxSlotsPerDevice = 1U << 17;
/// Smallest region: for a disk whose depth is unknown, or when the pool is nearly empty.
inline constexpr std::uint32_t kMinSlotsPerDevice = 1U << 10;

/// Slots for one disk: the power of two that holds queues x depth, within the two limits above.
std::uint32_t slots_for(const SlotDemand& demand);

/// Whether `slots` give every request of the disk a slot of its own.
bool slots_are_exact(const SlotDemand& demand, std::uint32_t slots);

/// Any further disks find no row, and their I/O is counted as `device_table_full`.
inline constexpr std::uint32_t kMaxDevices = MAX_DEVICES;

/// Room for one second of the events of 87 drives at the highest rate that one drive should reach (500 a second), or
/// for a trim of a whole file system in small pieces: 43,690 events of 24 bytes.
inline constexpr std::uint32_t kSampleBytes = 1U << 20;
/// Where nothing is ever sampled: the largest page size of any machine.
inline constexpr std::uint32_t kMinSampleBytes = 1U << 16;
inline constexpr std::uint32_t kSampleEventBytes = sizeof(sample_event) + 8;  // BPF_RINGBUF_HDR_SZ

/// Rows kept free for disks that are plugged in later.
std::uint32_t spare_devices(std::size_t present);

/// Cells for this many cgroups on each CPU: 16 each, as one has a few operations by a few paths on a few devices, and
/// 16 for each device, whose root has more. Within 32 MB: 2 MB of them for I/O without a cell, 4 MB for announcements.
void plan_attribution(MemoryPlan& plan, std::uint32_t cgroups);

MemoryPlan plan_memory(const std::vector<SlotDemand>& present, std::uint32_t possible_cpus);

/// What one disk has of the kernel's tables.
struct Allocation {
  std::uint32_t device = 0;     // index in the kernel's tables
  std::uint32_t slot_base = 0;  // first slot of the region
  std::uint32_t slots = 0;      // a power of two
};

/// No two live allocations share a device index or a slot.
class TableAllocator {
 public:
  TableAllocator() = default;
  /// All device indexes and slots are free.
  TableAllocator(std::uint32_t devices, std::uint32_t slots);

  /// Best fit, or else a smaller region, whose slots requests then share. Nothing when indexes or slots have run out.
  std::optional<Allocation> allocate(const SlotDemand& demand);

  /// Neighbouring free regions are merged again. The allocation must be live.
  void release(const Allocation& allocation);

  [[nodiscard]] std::size_t free_devices() const { return free_devices_.size(); }
  [[nodiscard]] std::uint64_t free_slots() const;
  [[nodiscard]] std::size_t free_regions() const { return free_regions_.size(); }

 private:
  using Regions = std::map<std::uint32_t, std::uint32_t>;  // base -> length
  [[nodiscard]] Regions::iterator best_region(std::uint32_t wanted);

  std::vector<std::uint32_t> free_devices_;
  Regions free_regions_;
};

/// A request that has not ended this long after its disk retired ended unseen: see INTERFERENCE_STALE_NS. Drivers give
/// up sooner (NVMe after two timeouts of 30 s). If one does end later, its queue is forgotten and nothing is counted.
inline constexpr std::chrono::seconds kEndedUnseenAfter{300};

/// Decides when the allocation of a disk that is gone or excluded is free again.
class Retirement {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Retirement(Time now) : last_end_(now) {}

  /// Call it after each reading of the counts. Nothing begins in a retiring row, so the number in flight there
  /// changes only by ends; other counts may grow, as the disk may be in use without being measured.
  void observe(std::int64_t in_flight, Time now) {
    if (in_flight_ != in_flight) {
      in_flight_ = in_flight;
      last_end_ = now;
    }
  }

  /// Whether all requests have ended: none is in flight, or none has been seen to end for kEndedUnseenAfter.
  [[nodiscard]] bool over(bool in_flight, Time now) const { return !in_flight || now - last_end_ >= kEndedUnseenAfter; }

 private:
  std::optional<std::int64_t> in_flight_;
  Time last_end_;
};

}  // namespace ssdpulse::block
