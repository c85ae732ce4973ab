// SPDX-License-Identifier: Apache-2.0
// LoadWindow: what one device did in the last minutes, sorted by the load that it was under. EqualLoad: how much longer
// a device takes than the median of others under the same load. Pure.
//
// Each stretch of a few seconds is one load. Compared are device times, without those I/Os during which a discard or a
// flush was in flight. Unequal loads must not look like slow drives, so whatever cannot be matched exactly counts in
// favour of the device: siblings may write more than it does meanwhile, and what a sibling takes is multiplied by as
// many times as the device's depth is greater, since a drive that is saturated takes as much longer and no drive more.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/compare/verdict.h"
#include "daemon/model/latency_buckets.h"
#include "daemon/model/stage.h"

namespace ssdpulse::siblings {

/// Loads that differ in none of this are equal.
struct LoadClass {
  model::Operation operation = model::Operation::read;
  bool sequential = false;        // at least half of the bytes
  std::uint8_t median_bytes = 0;  // of an I/O: a word of SizeHistogram, as the next; both, as few large I/Os and
  std::uint8_t mean_bytes = 0;    // many small ones have the mean of others
  std::uint8_t depth = 0;         // while anything was in flight: 0: below 1.5, then in powers of two
  std::uint8_t written = 0;       // bytes written a second: 0: below 1 MiB, then in powers of four
  auto operator<=>(const LoadClass&) const = default;
  /// Whatever the depth is, and what is written meanwhile.
  [[nodiscard]] bool is_like(const LoadClass& other) const {
    return sequential == other.sequential && median_bytes == other.median_bytes && mean_bytes == other.mean_bytes;
  }
};

/// I/Os of one class.
struct LoadCell {
  model::SparseBuckets device_times;
  double depth_sum = 0;      // over stretches, weighted with their I/Os, as the next
  double in_flight_sum = 0;  // on average over the whole stretch
  double ticks = 0;
  double busy_ticks = 0;  // at which something was in flight
  void operator+=(const LoadCell& more);
};

/// In memory: at most kSlices * 8 cells of a few hundred bytes each, usually 20 kB a device, never more than 0.3 MB.
class LoadWindow {
 public:
  static constexpr std::chrono::seconds kStretch{5};
  static constexpr std::chrono::seconds kSlice{20};
  static constexpr std::size_t kSlices = 9;

  struct Slice {
    std::map<LoadClass, LoadCell> cells;
    std::uint64_t written_bytes = 0;
    double seconds = 0;
    bool disturbed = false;  // by something that the siblings need not have: a rebuild, a scrub
  };

  /// One second. `busy_ratio`: of the last seconds, by the kernel's account; without it no load is known.
  void add(const model::DeviceTick& device, std::optional<double> busy_ratio, bool disturbed);
  void end_stretch();
  /// Begins another slice.
  void end_slice();

  [[nodiscard]] const std::deque<Slice>& slices() const { return slices_; }
  [[nodiscard]] bool disturbed() const;
  /// Bytes a second, in the last hour or so.
  [[nodiscard]] double written_lately() const { return written_lately_; }

 private:
  struct Stretch {
    model::DeviceInterval sum;
    std::shared_ptr<const model::DeviceIo> begin;  // sizes are cumulative
    std::shared_ptr<const model::DeviceIo> end;
    double busy_seconds = 0;
    double ticks = 0;
    double busy_ticks = 0;
    bool known = true;
  };
  Stretch stretch_;
  std::deque<Slice> slices_ = std::deque<Slice>(1);  // the last one is not complete
  double written_lately_ = 0;
  double hours_ = 0;
};

struct EqualLoadRatio {
  compare::Change change;
  compare::Interval interval;         // of the ratio
  double fastest_ratio = 1;           // of the fastest tenth: where I/Os wait for one another, some still do not
  double median_seconds = 0;          // of the device
  double sibling_seconds = 0;         // of the median sibling, at its load
  std::vector<std::size_t> siblings;  // that had such loads
};

/// Of several devices that ought to be alike, and one operation.
class EqualLoad {
 public:
  EqualLoad(const std::vector<const LoadWindow*>& members, model::Operation operation);

  /// Absent if less than half of its I/Os have an equal among `min_siblings` others, or fewer than a third of all, or
  /// if it has I/Os in too few slices for an interval.
  [[nodiscard]] std::optional<EqualLoadRatio> ratio_of(std::size_t member, std::size_t min_siblings) const;

 private:
  static constexpr std::size_t kDraws = LoadWindow::kSlices + 1;
  static constexpr std::size_t kMaxLoads = 8;
  /// What a device took under one load: in all slices, then without each of them in turn.
  struct Times {
    double ios = 0;
    double log_depth = 0;
    double log_most_depth = 0;  // however much of the kernel's busy time is rounding
    std::array<double, kDraws> log_median = {};
    std::array<double, kDraws> log_mean = {};
    double log_fastest = 0;
  };
  using Loads = std::map<LoadClass, Times>;
  struct Member {
    Loads loads;             // the kMaxLoads with most I/Os
    double ios = 0;          // of all loads
    std::size_t slices = 0;  // with I/Os
    std::size_t complete_slices = 0;
  };
  /// A device under one load, against one sibling.
  struct Against {
    std::size_t sibling = 0;
    double unlike = 0;  // in depth: a logarithm
    double log_fastest = 0;
    std::array<double, kDraws> log_ratio = {};
  };
  static std::optional<Times> times_of(const LoadWindow& window, const LoadClass& load);
  static std::optional<Against> against(const Member& sibling, const LoadClass& load, const Times& own);
  [[nodiscard]] std::vector<Against> nearest(std::size_t member, const LoadClass& load, const Times& own,
                                             std::size_t min_siblings) const;

  std::vector<Member> members_;
};

}  // namespace ssdpulse::siblings
