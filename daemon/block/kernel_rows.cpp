// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/kernel_rows.h"

#include <optional>
#include <set>
#include <utility>

#include "bpf/abi/device_rows.h"
#include "daemon/block/io_cells.h"

namespace ssdpulse::block {
namespace {

std::optional<std::size_t> free_entry(const std::vector<__u64>& table, __u32 device) {
  const __u32 hash = device_row_hash(device);
  for (__u32 probe = 0; probe < DEVICE_ROW_PROBES; ++probe) {
    const std::size_t entry = (hash + probe) % DEVICE_ROW_ENTRIES;
    if (table[entry] == 0) {
      return entry;
    }
  }
  return std::nullopt;
}

}  // namespace

/// MINORBITS is 20 (include/linux/kdev_t.h).
DeviceRows::Wanted::Wanted(const model::Volume& volume, std::string of)
    : number(volume.major << 20U | volume.minor), row_of(std::move(of)) {}

DeviceRows::DeviceRows(std::span<__u64> table, std::uint32_t rows) : table_(table) {
  for (std::uint32_t row = 0; row < rows; ++row) {
    free_.push_back(row);
  }
}

void DeviceRows::update(const std::vector<Wanted>& wanted) {
  std::vector<__u64> table(table_.size());
  std::vector<std::pair<std::size_t, const Wanted*>> entries;
  std::set<std::string> names;
  for (const Wanted& one : wanted) {
    if (const auto entry = free_entry(table, one.number)) {
      table[*entry] = one.number;
      entries.emplace_back(*entry, &one);
      names.insert(one.row_of);
    }
  }
  std::erase_if(rows_, [&](const auto& known) {
    const bool gone = names.count(known.first) == 0;
    if (gone) {
      free_.push_back(known.second);
    }
    return gone;
  });
  for (const auto& [entry, one] : entries) {
    auto row = rows_.find(one->row_of);
    if (row == rows_.end() && !free_.empty()) {
      row = rows_.emplace(one->row_of, free_.front()).first;
      free_.pop_front();
    }
    // A device without a row keeps its entry, so that others find theirs.
    table[entry] |= row == rows_.end() ? 0 : (__u64{row->second} + 1) << DEVICE_ROW_SHIFT;
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i] != table_[i]) {
      store(table_[i], table[i]);
    }
  }
}

}  // namespace ssdpulse::block
