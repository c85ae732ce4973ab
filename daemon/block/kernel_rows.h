// SPDX-License-Identifier: Apache-2.0
// DeviceRows: which block device has which row in other tables of the kernel's programs; see bpf/abi/device_rows.h.
// Writes the kernel's table through its mapping, without system calls. Not thread-safe.
#pragma once

#include <linux/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/model/device.h"

namespace ssdpulse::block {

class DeviceRows {
 public:
  /// `table`: DEVICE_ROW_ENTRIES words.
  DeviceRows(std::span<__u64> table, std::uint32_t rows);

  /// A device that is to have a row. Partitions may share that of their disk.
  struct Wanted {
    explicit Wanted(const model::Volume& volume, std::string of);
    __u32 number;        // of the device, as in block_device.bd_dev
    std::string row_of;  // name of the device whose row it is
  };
  /// Told of each device that gets a row, before the programs in the kernel know it: what the row has counted until
  /// then is of others, and all that it counts later is the device's.
  using Given = std::function<void(const std::string& device, std::uint32_t row)>;
  /// Devices that are not among these lose their row. Where rows are too few, the first ones have them. A row that was
  /// lost in the same update is given away only if no other is free: bios that are in flight then end in it.
  void update(const std::vector<Wanted>& wanted, const Given& given);

  /// By the name of the device.
  [[nodiscard]] const std::map<std::string, std::uint32_t>& rows() const { return rows_; }

 private:
  [[nodiscard]] std::vector<std::optional<std::size_t>> entries_of(const std::vector<Wanted>& wanted) const;

  std::span<__u64> table_;
  std::map<std::string, std::uint32_t> rows_;
  std::deque<std::uint32_t> free_;  // longest free first: what was in flight there may still end
};

}  // namespace ssdpulse::block
