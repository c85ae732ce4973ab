// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/kernel_memory.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>

#include "bpf/abi/discard_abi.h"

namespace ssdpulse::block {
namespace {

/// For all devices together: more would only make it rarer that two CPUs with tagged writes share a cell.
constexpr std::uint64_t kMaxTaggedBytes = 1'500'000;
/// For all cells together, as far as sharing cells can achieve it.
constexpr std::uint64_t kMaxCellBytes = 202'000'000;

/// Cells of one device: a power of two that fits into `bytes`; more than one for each CPU would be of no use.
std::uint32_t shared_cells(std::uint64_t bytes, const MemoryPlan& plan, std::size_t cell_bytes) {
  const std::uint64_t affordable = std::max<std::uint64_t>(bytes / (plan.devices * cell_bytes), 1);
  return static_cast<std::uint32_t>(std::min(std::bit_floor(affordable), std::uint64_t{std::bit_ceil(plan.cpus)}));
}

}  // namespace

std::uint64_t MemoryPlan::cell_bytes() const {
  const std::uint64_t hot = std::uint64_t{devices} * cpus * HOT_CLASSES;
  const std::uint64_t cold = std::uint64_t{devices} * COLD_CLASSES;
  return (hot + cold) * sizeof(io_cell) + std::uint64_t{devices} * cpus * sizeof(write_cell) +
         std::uint64_t{devices} * tagged_cells * sizeof(tagged_cell) +
         std::uint64_t{devices} * commit_cells * sizeof(commit_cell);
}

std::uint64_t MemoryPlan::slot_bytes() const { return std::uint64_t{slots} * sizeof(issue_slot); }

std::uint64_t MemoryPlan::table_bytes() const {
  return MAX_DEVICES * sizeof(device_state) + std::uint64_t{devices} * (sizeof(device_events) + sizeof(stream_ends)) +
         std::uint64_t{discard_rows} * SUBMITTERS * sizeof(discard_cell) +
         (discard_rows > 0 ? DEVICE_ROW_ENTRIES * sizeof(__u64) : 0) + KNOWN_DISKS * sizeof(known_disk) +
         QUEUE_IDS * sizeof(queue_entry) + sizeof(host_state) + END_FUNCTION_SETS * sizeof(end_function_set);
}

std::uint64_t MemoryPlan::attribution_bytes() const {
  if (attribution_sets == 0) {
    return 0;
  }
  return std::uint64_t{cpus} * (attribution_sets * sizeof(attribution_set) + sizeof(::announcements) +
                                announcements * sizeof(announced_cgroup)) +
         std::uint64_t{devices} * unattributed_cells * sizeof(unattributed);
}

std::uint64_t VolumePlan::bytes() const {
  return rows == 0 ? 0
                   : std::uint64_t{rows} * volume_cells_of_row(stripes) * sizeof(volume_cell) + sets * sizeof(bio_set) +
                         DEVICE_ROW_ENTRIES * sizeof(__u64);
}

VolumePlan plan_volumes(std::uint32_t present_rows, std::uint32_t possible_cpus) {
  constexpr std::uint32_t kSpareRows = 64, kSetsOfRow = 64 /* 256 bios */, kMinSets = 1024, kMaxSets = 32768;
  if (present_rows == 0) {
    return {};
  }
  return {.rows = std::min<std::uint32_t>(present_rows + std::max(present_rows, kSpareRows), VOLUME_MAX_ROWS),
          .stripes = std::min<std::uint32_t>(std::bit_ceil(possible_cpus), VOLUME_MAX_STRIPES),
          .sets = std::clamp(std::bit_ceil(present_rows * kSetsOfRow), kMinSets, kMaxSets)};
}

void plan_attribution(MemoryPlan& plan, std::uint32_t cgroups) {
  constexpr std::uint64_t kCellsEach = 16;
  constexpr std::uint64_t kMaxSetBytes = 26'000'000;
  constexpr std::uint64_t kMaxUnattributedBytes = 2'000'000;
  constexpr std::uint64_t kMaxAnnouncements = 8192;  // of all CPUs
  const std::uint64_t wanted = kCellsEach * (std::uint64_t{cgroups} + plan.devices) / ATTRIBUTED_IN_SET;
  const std::uint64_t affordable = kMaxSetBytes / (plan.cpus * sizeof(attribution_set));
  plan.attribution_sets = static_cast<std::uint32_t>(std::max<std::uint64_t>(std::min(wanted, affordable), 1));
  plan.announcements =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(std::bit_floor(kMaxAnnouncements / plan.cpus), 16, 512));
  plan.unattributed_cells = shared_cells(kMaxUnattributedBytes, plan, sizeof(unattributed));
}

std::uint32_t slots_for(const SlotDemand& demand) {
  const std::uint64_t wanted = std::uint64_t{std::max(demand.hardware_queues, 1U)} * demand.queue_depth;
  return static_cast<std::uint32_t>(
      std::clamp(std::bit_ceil(wanted), std::uint64_t{kMinSlotsPerDevice}, std::uint64_t{kMaxSlotsPerDevice}));
}

bool slots_are_exact(const SlotDemand& demand, std::uint32_t slots) {
  return demand.queue_depth > 0 && std::uint64_t{std::max(demand.hardware_queues, 1U)} * demand.queue_depth <= slots;
}

std::uint32_t spare_devices(std::size_t present) { return static_cast<std::uint32_t>(4 + present / 32); }

MemoryPlan plan_memory(const std::vector<SlotDemand>& present, std::uint32_t possible_cpus) {
  const auto placed = static_cast<std::uint32_t>(std::min<std::size_t>(present.size(), kMaxDevices));
  const std::uint32_t spare = std::min(spare_devices(placed), kMaxDevices - placed);
  std::vector<std::uint32_t> regions;
  std::transform(present.begin(), present.begin() + placed, std::back_inserter(regions), slots_for);
  // A new disk is most likely like the largest of those already here.
  const std::uint32_t likely = regions.empty() ? kMinSlotsPerDevice : *std::max_element(regions.begin(), regions.end());
  const std::uint64_t total = std::accumulate(regions.begin(), regions.end(), std::uint64_t{spare} * likely);
  const std::uint64_t budget = std::uint64_t{kMaxSlotsPerDevice} * std::max(8U, placed);
  MemoryPlan plan;
  plan.devices = placed + spare;
  plan.cpus = std::max(possible_cpus, 1U);
  plan.slots = static_cast<std::uint32_t>(std::min(total, budget));
  plan.tagged_cells = shared_cells(kMaxTaggedBytes, plan, sizeof(tagged_cell));
  plan.commit_cells = 0;
  const std::uint64_t left = kMaxCellBytes - std::min(kMaxCellBytes, plan.cell_bytes());
  plan.commit_cells = shared_cells(left, plan, sizeof(commit_cell));
  plan.sample_bytes = kSampleBytes;
  return plan;
}

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
  return std::accumulate(free_regions_.begin(), free_regions_.end(), std::uint64_t{0},
                         [](std::uint64_t slots, const auto& region) { return slots + region.second; });
}

}  // namespace ssdpulse::block
