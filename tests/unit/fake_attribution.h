// SPDX-License-Identifier: Apache-2.0
// What do the tables of the fake kernel contain, by the devices' own cells and by the attributed ones?
#pragma once

#include <cstdint>
#include <iterator>
#include <numeric>

#include "tests/unit/fake_kernel.h"

namespace ssdpulse::test {

struct Amount {
  std::uint64_t ios = 0;
  std::uint64_t bytes = 0;
  bool operator==(const Amount&) const = default;
};

/// By operation (ATTRIBUTED_*): reads, writes and discards.
inline Amount counted(std::uint32_t operation, bool completion_only) {
  constexpr std::uint32_t kClasses[] = {CLASS_READ, CLASS_WRITE, CLASS_DISCARD};
  const std::uint32_t operation_class = kClasses[operation];
  const io_cell& cell =
      operation_class < HOT_CLASSES ? fake_hot.of[operation_class] : fake_cold_cells[operation_class - HOT_CLASSES];
  if (completion_only) {
    return {cell.completions, cell.bytes};
  }
  std::uint64_t ios = fake_device_events.of[operation_class].count[EVENT_STRAY];
  for (const auto& words : cell.device) {
    ios = std::accumulate(std::begin(words), std::end(words), ios);
  }
  return {ios, cell.bytes};
}

/// Regardless of the owner.
inline Amount attributed_to_all(std::uint32_t operation) {
  Amount sum;
  for (const attribution_set& set : fake_attributions) {
    for (const attributed& cell : set.cell) {
      if (cell.key != ATTRIBUTION_FREE &&
          (cell.key >> ATTRIBUTION_OPERATION_SHIFT & (ATTRIBUTED_OPERATIONS - 1)) == operation) {
        sum.ios += cell.ios;
        sum.bytes += cell.bytes;
      }
    }
  }
  for (const auto& of_path : fake_unattributed.of[operation]) {
    sum.ios += of_path.ios;
    sum.bytes += of_path.bytes;
  }
  return sum;
}

}  // namespace ssdpulse::test
