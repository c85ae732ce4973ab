// SPDX-License-Identifier: Apache-2.0
// Turns the kernel's words into the model's values. Pure functions; the one place where cell layout and model meet.
#pragma once

#include <linux/types.h>

#include <array>
#include <cstdint>

#include "bpf/abi/block_abi.h"
#include "daemon/model/snapshot.h"
#include "daemon/sources/block/cell_reader.h"

namespace ssdpulse::block {

/// Positions of io_cell's counters in CellWords::counters.
inline constexpr std::size_t kIssues = 0;
inline constexpr std::size_t kCompletions = 1;
inline constexpr std::size_t kBytes = 2;
inline constexpr std::size_t kSizeSum = 3;
inline constexpr std::size_t kSequentialBytes = 4;
inline constexpr std::size_t kQueueSum = 5;
inline constexpr std::size_t kTotalSum = 6;
inline constexpr std::size_t kDeviceSum = 7;
inline constexpr std::size_t kReissues = kDeviceSum + DURINGS;
inline constexpr std::size_t kQueueFull = 12;
inline constexpr std::size_t kUntimed = 13;

struct EventIncrements {
  std::array<std::uint64_t, EVENTS> count{};
  std::array<std::uint64_t, STATUSES> errors{};
  bool any = false;
};

EventIncrements increments(const operation_events& now, const operation_events& before);

/// Normalises a blk_status_t (include/linux/blk_types.h). 16 and 17 are both `offline`: the number moved when
/// BLK_STS_ZONE_RESOURCE was removed, and their other meanings concern zoned drives and command duration limits.
model::IoError error_of_status(std::size_t status);

void decode_events(const EventIncrements& events, model::DeviceIo& device, model::OperationIo& io);
void decode_cell(const CellWords& increments, model::OperationIo& io);

}  // namespace ssdpulse::block
