// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/kernel_rows.h"

#include <optional>
#include <set>
#include <utility>

#include "bpf/abi/device_rows.h"
#include "daemon/block/io_cells.h"

namespace ssdpulse::block {
namespace {

__u32 row_in(__u64 entry) { return static_cast<__u32>(entry >> DEVICE_ROW_SHIFT); }

/// The first of the places of a device that is as it should be.
template <typename Fits>
std::optional<std::size_t> place_of(__u32 device, Fits fits) {
  for (__u32 probe = 0; probe < DEVICE_ROW_PROBES; ++probe) {
    const std::size_t place = (device_row_hash(device) + probe) % DEVICE_ROW_ENTRIES;
    if (fits(place)) {
      return place;
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

/// Those that have an entry keep it, so that the programs find them at any moment. One that others lose now is not
/// taken yet: it must not count in a row that is given away.
std::vector<std::optional<std::size_t>> DeviceRows::entries_of(const std::vector<Wanted>& wanted) const {
  std::vector<std::optional<std::size_t>> entries;
  std::vector<bool> taken(table_.size());
  for (const Wanted& one : wanted) {
    entries.push_back(
        place_of(one.number, [&](std::size_t place) { return static_cast<__u32>(table_[place]) == one.number; }));
    if (entries.back()) {
      taken[*entries.back()] = true;
    }
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!entries[i]) {
      entries[i] =
          place_of(wanted[i].number, [&](std::size_t place) { return !taken[place] && row_in(table_[place]) == 0; });
      if (entries[i]) {
        taken[*entries[i]] = true;
      }
    }
  }
  return entries;
}

void DeviceRows::update(const std::vector<Wanted>& wanted, const Given& given) {
  const auto entries = entries_of(wanted);
  std::set<std::string> names;
  std::vector<__u32> rows(table_.size());  // those that stay
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (entries[i]) {
      names.insert(wanted[i].row_of);
      const auto row = rows_.find(wanted[i].row_of);
      rows[*entries[i]] = row == rows_.end() ? 0 : row->second + 1;
    }
  }
  for (std::size_t place = 0; place < table_.size(); ++place) {
    if (row_in(table_[place]) != rows[place] && row_in(table_[place]) != 0) {
      store(table_[place], static_cast<__u32>(table_[place]));  // no row, but others are found behind it
    }
  }
  std::erase_if(rows_, [&](const auto& known) {
    const bool gone = names.count(known.first) == 0;
    if (gone) {
      free_.push_back(known.second);
    }
    return gone;
  });
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!entries[i]) {
      continue;
    }
    auto row = rows_.find(wanted[i].row_of);
    if (row == rows_.end() && !free_.empty()) {
      row = rows_.emplace(wanted[i].row_of, free_.front()).first;
      free_.pop_front();
      given(row->first, row->second);
    }
    // A device without a row keeps its entry, too.
    const __u64 entry = wanted[i].number | (row == rows_.end() ? 0 : (__u64{row->second} + 1) << DEVICE_ROW_SHIFT);
    if (table_[*entries[i]] != entry) {
      store(table_[*entries[i]], entry);
    }
  }
}

}  // namespace ssdpulse::block
