// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/discard_submissions.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace ssdpulse::block {
namespace {

static_assert(SUBMITTERS == model::kDiscardSubmitters);
static_assert(SUBMITTER_KERNEL == static_cast<int>(model::DiscardSubmitter::kernel));
static_assert(SUBMITTER_OTHER == static_cast<int>(model::DiscardSubmitter::other));

/// Volumes of measured disks, and of the devices stacked on disks.
std::vector<const model::Volume*> volumes_of_interest(const model::Inventory& inventory) {
  std::set<std::string_view> disks;
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::measured || device.coverage == model::Coverage::stacked) {
      disks.insert(device.name);
    }
  }
  std::vector<const model::Volume*> volumes;
  for (const model::Volume& volume : inventory.volumes) {
    if (disks.count(volume.device) != 0) {
      volumes.push_back(&volume);
    }
  }
  return volumes;
}

/// The device number as in block_device.bd_dev (MINORBITS in include/linux/kdev_t.h).
__u32 device_number(const model::Volume& volume) { return volume.major << 20U | volume.minor; }

std::optional<std::size_t> free_entry(const std::vector<__u64>& table, __u32 device) {
  const __u32 hash = discard_volume_hash(device);
  for (__u32 probe = 0; probe < DISCARD_VOLUME_PROBES; ++probe) {
    const std::size_t entry = (hash + probe) % DISCARD_VOLUMES;
    if (table[entry] == 0) {
      return entry;
    }
  }
  return std::nullopt;
}

std::uint64_t acquire(const __u64& word) {
  return std::atomic_ref(const_cast<__u64&>(word)).load(std::memory_order_acquire);
}

}  // namespace

std::uint32_t discard_rows(const model::Inventory& inventory) {
  constexpr std::size_t kSpare = 64;
  const std::size_t present = volumes_of_interest(inventory).size();
  return static_cast<std::uint32_t>(std::min<std::size_t>(present + present / 4 + kSpare, DISCARD_VOLUMES));
}

DiscardSubmissionReader::DiscardSubmissionReader(std::span<const discard_cell> cells, std::span<__u64> volumes,
                                                 bool sees_partitions)
    : cells_(cells), volumes_(volumes), sees_partitions_(sees_partitions) {
  for (std::uint32_t row = 0; row < cells.size() / SUBMITTERS; ++row) {
    free_.push_back(row);
  }
}

void DiscardSubmissionReader::update(const model::Inventory& inventory) {
  std::vector<__u64> table(volumes_.size());
  std::map<std::string, std::size_t> entries;  // in the table, by volume
  for (const model::Volume* volume : volumes_of_interest(inventory)) {
    const auto entry = free_entry(table, device_number(*volume));
    if (entry && (sees_partitions_ || volume->name == volume->device)) {
      table[*entry] = device_number(*volume);
      entries.emplace(volume->name, *entry);
    }
  }
  for (auto known = rows_.begin(); known != rows_.end();) {
    if (entries.count(known->first) != 0) {
      ++known;
      continue;
    }
    free_.push_back(known->second.number);
    known = rows_.erase(known);
  }
  for (const auto& [volume, entry] : entries) {
    if (rows_.count(volume) == 0 && !free_.empty()) {
      rows_.emplace(volume, VolumeRow{free_.front(), read_cells(free_.front())});
      free_.pop_front();
    }
    const auto row = rows_.find(volume);
    table[entry] |= row == rows_.end() ? 0 : (__u64{row->second.number} + 1) << DISCARD_VOLUME_ROW_SHIFT;
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i] != volumes_[i]) {
      std::atomic_ref(volumes_[i]).store(table[i], std::memory_order_release);
    }
  }
}

model::DiscardSubmitters DiscardSubmissionReader::read_cells(std::uint32_t row) const {
  model::DiscardSubmitters result;
  for (std::size_t submitter = 0; submitter < SUBMITTERS; ++submitter) {
    const discard_cell& cell = cells_[std::size_t{row} * SUBMITTERS + submitter];
    model::DiscardSubmissions& out = result[submitter];
    out.bytes = acquire(cell.bytes);
    out.ranges = acquire(cell.ranges);
    out.first_ns = acquire(cell.first_ns);
    out.last_ns = acquire(cell.last_ns);
    out.submitter = std::string_view(cell.name, strnlen(cell.name, sizeof(cell.name)));
  }
  return result;
}

std::map<std::string, model::DiscardSubmitters> DiscardSubmissionReader::read() const {
  std::map<std::string, model::DiscardSubmitters> result;
  for (const auto& [volume, row] : rows_) {
    model::DiscardSubmitters now = read_cells(row.number);
    for (std::size_t submitter = 0; submitter < SUBMITTERS; ++submitter) {
      now[submitter].bytes -= row.baseline[submitter].bytes;
      now[submitter].ranges -= row.baseline[submitter].ranges;
    }
    result.emplace(volume, std::move(now));
  }
  return result;
}

}  // namespace ssdpulse::block
