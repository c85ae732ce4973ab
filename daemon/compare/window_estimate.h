// SPDX-License-Identifier: Apache-2.0
// Estimate: the value of a figure in one window, and how far off it can be by chance. BlockDraws: the circular block
// bootstrap of sums over minutes that it comes from.
//
// Each draw combines as many minutes as there were, in blocks of neighbours (the last minute's neighbour is the first),
// and adds up their contents. Consecutive minutes are alike, and so are the I/Os within one: drawing them one by one
// would give far too narrow an interval. Pure; the same seed gives the same draws on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace ssdpulse::compare {

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

/// Circular blocks overlap: their variance is as certain as that of 1.5 times as many (Meketon and Schmeiser 1984).
inline constexpr double kOverlap = 1.5;

/// The number of consecutive minutes that belong together, as a block of the bootstrap.
struct BlockLength {
  std::size_t minutes = 0;
  double wanted = 0;           // minutes that the series calls for; more than `minutes` if the window is too short
  double autocorrelation = 0;  // of one minute and the next; 0 if it is not known
};

/// For the circular block bootstrap, by Politis and White (2004) with the correction of 2009: from the autocorrelations
/// up to where they vanish. At least 5 minutes and the cube root of their number, at most an eighth of it. `series`:
/// one value per minute.
BlockLength block_length(std::span<const double> series);

/// A figure computed from sums over minutes.
struct Figure {
  using Sums = std::span<const double>;

  std::function<std::optional<double>(Sums)> log_value;  // natural logarithm; absent: there is no such figure
  /// The part of one minute that decides it, given its log_value: the samples beyond a quantile, the numerator of a
  /// ratio.
  std::function<double(Sums, double)> mass;
  std::function<double(Sums)> samples = [](Sums) { return 0.0; };  // behind the figure
  /// Variance of log_value from the number of samples alone, as if they were independent.
  std::function<double(Sums)> sampling_variance = [](Sums) { return 0.0; };
  /// The figure itself if it has no logarithm: 0, or absent if it is not known.
  std::function<std::optional<double>(Sums)> value_of_none = [](Sums) { return std::nullopt; };
};

struct Estimate {
  double log_value = 0;
  double variance = 0;      // of log_value
  double degrees = 0;       // of freedom of the variance
  double max_variance = 0;  // if minutes are as alike as they are on busy disks, which few minutes do not show
  std::size_t block_minutes = 0;
  double blocks = 0;  // that carry the figure: fewer than there are if a few minutes decide it
  double longer = 1;  // the factor by which a window must be longer to have enough blocks; 1: this one has
};

struct EstimateSettings {
  std::size_t draws = 2000;
  std::uint64_t seed = 1;
};

/// Absent if the figure has no log_value in the whole window.
std::optional<Estimate> estimate(const MinuteSums& sums, const Figure& figure, const EstimateSettings& settings);

}  // namespace ssdpulse::compare
