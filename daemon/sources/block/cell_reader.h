// SPDX-License-Identifier: Apache-2.0
// CellReader: how much a cell has counted since the last read.
//
// The kernel's histogram words have 32 bits, are per CPU for reads and writes, and are never reset. The sum over the
// CPUs, modulo 2^32, minus the previous sum is the exact increment if fewer than 2^32 I/Os fall into one bucket between
// two reads. A cell whose change stamp has not moved is not read: cells that have been quiet for a while are kept as
// one sum.
#pragma once

#include <linux/types.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "bpf/abi/block_abi.h"

namespace ssdpulse::block {

/// The words of a cell as arrays, in the cell's own order.
inline constexpr std::size_t kCounterWords = 16;  // u64: issues ... untimed, and padding
inline constexpr std::size_t kHistogramWords = SIZE_WORDS + (2 + DURINGS) * LATENCY_WORDS;
struct CellWords {
  std::array<std::uint64_t, kCounterWords> counters{};
  std::array<std::uint32_t, kHistogramWords> histograms{};

  void add(const io_cell& cell);
  void add_completions(const io_cell& cell);  // all counters except the issues
  void add_the_rest(const io_cell& cell);     // the issues and the histograms
  /// this - earlier, each word modulo its width.
  [[nodiscard]] CellWords since(const CellWords& earlier) const;

 private:
  void add_counters(const io_cell& cell, std::size_t first, std::size_t end);
};

/// Reads the cells of one operation of one device: one for each CPU, or a single one.
class CellReader {
 public:
  /// `stride`: distance between the cells of neighbouring CPUs. What the cells hold now becomes the baseline.
  CellReader(std::span<const io_cell> cells, std::size_t first, std::size_t stride, std::size_t count);

  /// Increments since the last call (or the baseline); null when nothing changed. Valid until the next call.
  const CellWords* read();

 private:
  struct Watch {
    std::uint64_t stamp = 0;
    std::uint32_t ticks_to_quiet = 0;  // 0: the cell is part of quiet_
  };
  [[nodiscard]] const io_cell& cell(std::size_t i) const { return cells_[first_ + i * stride_]; }
  static std::uint64_t stamp_of(const io_cell& cell);

  std::span<const io_cell> cells_;
  std::size_t first_;
  std::size_t stride_;
  std::vector<Watch> watches_;
  CellWords quiet_;  // sum of the quiet cells
  CellWords last_;   // sum of all cells at the last reading
  CellWords increments_;
};

}  // namespace ssdpulse::block
