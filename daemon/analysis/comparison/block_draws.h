// SPDX-License-Identifier: Apache-2.0
// BlockDraws: the circular block bootstrap of sums over minutes.
//
// Each draw combines as many minutes as there were, in blocks of neighbours (the last minute's neighbour is the first),
// and adds up their contents. Consecutive minutes are alike, and so are the I/Os within one: drawing them one by one
// would give far too narrow an interval. Pure; the same seed gives the same draws on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace ssdpulse::analysis::comparison {

/// Numbers to be added up: `width` of them for each minute, minute by minute.
struct MinuteSums {
  std::size_t width = 0;
  std::vector<double> cells;

  [[nodiscard]] std::size_t minutes() const { return width == 0 ? 0 : cells.size() / width; }
  [[nodiscard]] std::span<const double> minute(std::size_t index) const { return {&cells[index * width], width}; }
  [[nodiscard]] std::vector<double> total() const;
};

class BlockDraws {
 public:
  using Use = std::function<void(std::span<const double> sums)>;

  /// `block` minutes, from 1 to all of them.
  BlockDraws(const MinuteSums& sums, std::size_t block);

  void draw(std::size_t draws, std::uint64_t seed, const Use& use) const;

 private:
  void add_up(std::vector<double>& starts, const MinuteSums& sums, std::size_t length) const;

  std::size_t width_;
  std::size_t minutes_;
  std::size_t block_;
  std::size_t rest_;              // length of the last block
  std::vector<double> of_block_;  // sums of the block that begins at each minute
  std::vector<double> of_rest_;
};

}  // namespace ssdpulse::analysis::comparison
