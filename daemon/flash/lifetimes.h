// SPDX-License-Identifier: Apache-2.0
// Lifetimes: how long written data lives on one drive, by the hint it was written with.
// The clock is the volume that the host writes to the whole drive, in units of 1/65536 of it, so that lifetimes can be
// compared with over-provisioning. A lifetime ends with the next write or discard of the page. Versions that still live
// count too, with their age (Kaplan and Meier), or the longest lifetimes would be missing. Versions from before the
// start are left out: their age is unknown.
//
// The same lifetimes show what a log with FIFO collection would relocate (fifo_write_amplification()): a version that
// lives for tau is relocated once per lap of the log. That needs no simulation, but is right only for scattered loads:
// for files it is up to twice what greedy collection relocates.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/flash/binary_state.h"
#include "daemon/model/flash_values.h"

namespace ssdpulse::flash {

/// Counts of lifetimes, in units of the clock; 16 buckets per octave.
class LifetimeHistogram {
 public:
  static constexpr std::size_t kBuckets = 16 * 29;

  static std::size_t bucket_of(std::uint32_t lifetime);
  static double lower_bound(std::size_t bucket);

  void add(std::uint32_t lifetime) { ++counts[bucket_of(lifetime)]; }

  std::vector<std::uint64_t> counts = std::vector<std::uint64_t>(kBuckets);
};

/// One quantile, in drive writes: pages that the host wrote divided by those that the drive has.
struct LifetimeQuantile {
  double lifetime;
  double lower;  // 95 %, by Greenwood's formula
  double upper;
};

class Lifetimes {
 public:
  static constexpr std::size_t kHints = 8;
  static constexpr double kUnitsPerDriveWrite = 65536;

  /// `pages`: those followed, out of `drive_pages`.
  Lifetimes(std::uint32_t pages, std::uint64_t drive_pages);

  void advance(std::uint64_t drive_pages) { volume_ += drive_pages; }
  /// The lifetime, in units, of the version that ends here, if it was born since the start.
  std::optional<std::uint32_t> write(std::uint32_t page, std::uint8_t hint);
  void discard(std::uint32_t page);

  /// Deaths and live pages, for versions born since the start.
  struct Survival {
    LifetimeHistogram deaths;
    LifetimeHistogram alive;
    std::uint64_t ended = 0;
    std::uint64_t living = 0;
    std::uint32_t pages = 0;  // of which a version died
    /// The lifetime that a share of `quantile` does not reach; absent if not that many have died yet.
    [[nodiscard]] std::optional<LifetimeQuantile> quantile(double quantile) const;
  };
  /// Reads every page: not meant for every event.
  [[nodiscard]] Survival survival(std::uint8_t hint) const;

  /// Lifetimes of all versions, whatever their hint; what was there before the start counts as born then.
  struct Laps {
    LifetimeHistogram ended;
    LifetimeHistogram ages;
    std::uint64_t volume = 0;  // pages of the drive
  };
  [[nodiscard]] Laps laps() const;
  /// For a drive with FIFO collection, between two moments; absent if the host wrote nothing.
  [[nodiscard]] std::optional<double> fifo_write_amplification(const Laps& from, const Laps& to,
                                                               double overprovisioning) const;

  /// Shares of all followed pages: those without an event since the start, and those that hold nothing.
  [[nodiscard]] double unknown_share() const { return share(unknown_); }
  [[nodiscard]] double unmapped_share() const { return share(unmapped_); }
  /// After a full discard or format: no page holds data, and nothing is unknown.
  void forget_all();
  [[nodiscard]] double drive_writes() const;

  void save(BinaryWriter& out) const;
  bool restore(BinaryReader& in);
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  static constexpr std::uint8_t kUnknown = 0xFE;  // instead of a hint: unknown whether it is mapped
  static constexpr std::uint8_t kUnmapped = 0xFF;

  [[nodiscard]] std::uint32_t now() const { return static_cast<std::uint32_t>(volume_ / unit_pages_); }
  std::optional<std::uint32_t> end(std::uint32_t page);
  [[nodiscard]] double share(std::uint32_t pages) const {
    return hint_.empty() ? 0 : static_cast<double>(pages) / static_cast<double>(hint_.size());
  }

  std::uint64_t drive_pages_;
  std::uint64_t unit_pages_;
  std::uint64_t volume_ = 0;
  std::uint32_t unknown_;
  std::uint32_t unmapped_ = 0;
  std::vector<std::uint32_t> birth_;
  std::vector<std::uint8_t> hint_;
  std::vector<std::uint8_t> died_;  // by page: hints of which a version died, as bits
  std::array<std::uint32_t, kHints> pages_{};
  std::array<LifetimeHistogram, kHints> deaths_;
  LifetimeHistogram unknown_deaths_;
};

/// The data that a drive keeps apart if it goes by how long the previous version lived: four classes of equal volume,
/// whose limits follow recent lifetimes.
class LifetimeClasses {
 public:
  static constexpr std::uint32_t kClasses = 4;

  /// The class, 0 for the shortest lives, of a page whose previous version lived this long, in units of Lifetimes;
  /// absent: unknown, so taken as long.
  std::uint32_t next(std::optional<std::uint32_t> lifetime);

  void save(BinaryWriter& out) const;
  bool restore(BinaryReader& in);

 private:
  static constexpr std::uint64_t kLearnEvery = 4096;  // writes of the sample; what was learned before then counts half

  void learn();

  LifetimeHistogram recent_;
  std::uint64_t unknown_ = 0;
  std::uint64_t seen_ = 0;
  std::array<std::uint32_t, kClasses - 1> limits_{UINT32_MAX, UINT32_MAX, UINT32_MAX};
};

inline constexpr double kMinDisorder = 1.5;              // one median over the other
inline constexpr std::uint64_t kMinDistinctPages = 100;  // of a hint: resolution is by pages, not by deaths
inline constexpr std::uint64_t kMinDeaths = 100;
inline constexpr double kMinObserved = 0.25;  // drive writes

/// Pairs of write hints in the wrong order, whose shorter-lived data outlives the other's. Medians are in bytes that
/// the host writes to the drive, which has `drive_bytes`. Reads every followed page.
std::vector<model::HintOrderViolation> hint_order_violations(const Lifetimes& lifetimes, double drive_bytes);

}  // namespace ssdpulse::flash
