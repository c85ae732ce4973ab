// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/table_allocator.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace ssdpulse::block {

TableAllocator::TableAllocator(std::uint32_t devices, std::uint32_t slots) {
  for (std::uint32_t device = devices; device > 0; --device) {
    free_devices_.push_back(device - 1);
  }
  if (slots > 0) {
    free_regions_[0] = slots;
  }
}

TableAllocator::Regions::iterator TableAllocator::best_region(std::uint32_t wanted) {
  auto best = free_regions_.end();
  for (auto region = free_regions_.begin(); region != free_regions_.end(); ++region) {
    const bool fits = region->second >= wanted;
    if (best == free_regions_.end() || (fits && (best->second < wanted || region->second < best->second)) ||
        (!fits && best->second < wanted && region->second > best->second)) {
      best = region;
    }
  }
  return best;
}

std::optional<Allocation> TableAllocator::allocate(const SlotDemand& demand) {
  const std::uint32_t wanted = slots_for(demand);
  const auto best = best_region(wanted);
  if (free_devices_.empty() || best == free_regions_.end()) {
    return std::nullopt;
  }
  const auto [base, available] = *best;
  const Allocation allocation{free_devices_.back(), base, std::min(wanted, std::bit_floor(available))};
  free_devices_.pop_back();
  free_regions_.erase(best);
  if (available > allocation.slots) {
    free_regions_[base + allocation.slots] = available - allocation.slots;
  }
  return allocation;
}

void TableAllocator::release(const Allocation& allocation) {
  free_devices_.push_back(allocation.device);
  auto region = free_regions_.emplace(allocation.slot_base, allocation.slots).first;
  if (auto next = std::next(region); next != free_regions_.end() && region->first + region->second == next->first) {
    region->second += next->second;
    free_regions_.erase(next);
  }
  if (region != free_regions_.begin()) {
    if (auto previous = std::prev(region); previous->first + previous->second == region->first) {
      previous->second += region->second;
      free_regions_.erase(region);
    }
  }
}

std::uint64_t TableAllocator::free_slots() const {
  std::uint64_t slots = 0;
  for (const auto& [base, length] : free_regions_) {
    slots += length;
  }
  return slots;
}

}  // namespace ssdpulse::block
