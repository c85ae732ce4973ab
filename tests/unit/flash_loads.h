// SPDX-License-Identifier: Apache-2.0
// Seeded loads like those of databases and file systems: which pages of a drive are written and discarded, and when?
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

namespace ssdpulse::test {

/// SplitMix64: the same everywhere, and fast.
class FlashDice {
 public:
  explicit FlashDice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t mixed = state_ += 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBU;
    return mixed ^ mixed >> 31;
  }
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  std::uint64_t below(std::uint64_t end) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{next()} * end >> 64);
  }

 private:
  std::uint64_t state_;
};

struct FlashOperation {
  bool discard = false;
  std::uint64_t first = 0;  // pages
  std::uint64_t count = 1;
  std::uint8_t hint = 0;
};
using FlashLoad = std::function<FlashOperation()>;

/// A one-to-one shuffle of [0, pages): hot pages are anywhere.
class Scatter {
 public:
  explicit Scatter(std::uint64_t pages) : pages_(pages) {
    while ((std::uint64_t{1} << bits_) < pages) {
      bits_ += 2;
    }
  }
  [[nodiscard]] std::uint64_t operator()(std::uint64_t page) const {
    do {
      page = feistel(page);
    } while (page >= pages_);
    return page;
  }

 private:
  [[nodiscard]] std::uint64_t feistel(std::uint64_t value) const {
    const unsigned half = bits_ / 2;
    const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
    std::uint64_t left = value >> half;
    std::uint64_t right = value & mask;
    for (std::uint64_t round = 1; round <= 4; ++round) {
      const std::uint64_t mixed = FlashDice(right * 0x100000001B3U + round).next() & mask;
      left = std::exchange(right, left ^ mixed);
    }
    return left << half | right;
  }
  std::uint64_t pages_;
  unsigned bits_ = 2;
};

/// Rank r has weight r^-theta; by rejection and inversion (Hoermann and Derflinger, 1996), so that no table is needed.
class Zipf {
 public:
  Zipf(std::uint64_t pages, double theta)
      : theta_(theta),
        pages_(static_cast<double>(pages)),
        first_(integral(1.5) - 1),
        last_(integral(pages_ + 0.5)),
        sure_(2 - inverse(integral(2.5) - weight(2))) {}
  /// Returns ranks from 0.
  std::uint64_t operator()(FlashDice& dice) const {
    while (true) {
      const double at = last_ + dice.share() * (first_ - last_);
      const double exact = inverse(at);
      const double rank = std::clamp(std::floor(exact + 0.5), 1.0, pages_);
      if (rank - exact <= sure_ || at >= integral(rank + 0.5) - weight(rank)) {
        return static_cast<std::uint64_t>(rank) - 1;
      }
    }
  }

 private:
  [[nodiscard]] double weight(double rank) const { return std::pow(rank, -theta_); }
  [[nodiscard]] double integral(double rank) const { return (std::pow(rank, 1 - theta_) - 1) / (1 - theta_); }
  [[nodiscard]] double inverse(double area) const { return std::pow(1 + area * (1 - theta_), 1 / (1 - theta_)); }

  double theta_;
  double pages_;
  double first_;
  double last_;
  double sure_;
};

FlashLoad uniform_load(std::uint64_t pages, std::uint64_t seed);
/// A share `written` of the writes goes to `share` of the pages, which are hinted as short-lived.
FlashLoad hot_cold_load(std::uint64_t pages, double written, double share, bool scattered, std::uint64_t seed);
FlashLoad zipf_load(std::uint64_t pages, double theta, std::uint64_t seed);
/// Half of the volume is a log that cycles through a twentieth of the drive, the other half random writes of 4 pages.
FlashLoad wal_load(std::uint64_t pages, std::uint64_t seed);
/// Files of equal size in four levels, each level six times as large as the one before; three files are written at a
/// time, and each deletes one of its level.
FlashLoad lsm_load(std::uint64_t pages, std::uint64_t seed);
/// Files of 192 to 256 pages in any order; the drive is 85 % full.
FlashLoad files_load(std::uint64_t pages, std::uint64_t seed);
/// A share `discarded` of the operations discards some page that is in use.
FlashLoad discard_load(std::uint64_t pages, double discarded, std::uint64_t seed);
/// Cycles through the drive, 32 pages at a time.
FlashLoad circle_load(std::uint64_t pages);
/// Half of all writes go to 16 pages, the others anywhere.
FlashLoad few_pages_load(std::uint64_t pages, std::uint64_t seed);
/// Only a tenth of the addresses is ever written.
FlashLoad corner_load(std::uint64_t pages, std::uint64_t seed);

}  // namespace ssdpulse::test
