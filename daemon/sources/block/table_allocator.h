// SPDX-License-Identifier: Apache-2.0
// TableAllocator: hands out the parts of the kernel's tables to disks: a device index and a region of slots each. No
// two live allocations share either. Retirement: decides when the allocation of a disk that is gone or excluded is free
// again. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "daemon/sources/block/kernel_memory.h"

namespace ssdpulse::block {

struct Allocation {
  std::uint32_t device = 0;     // index in the kernel's tables
  std::uint32_t slot_base = 0;  // first slot of the region
  std::uint32_t slots = 0;      // a power of two
};

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
