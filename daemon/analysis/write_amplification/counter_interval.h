// SPDX-License-Identifier: Apache-2.0
// The interval of bytes that a counter can stand for.
// A counter of whole units shows that the true bytes lie in an interval; so do the difference of two readings, and the
// ratio of two differences. Exact, in unsigned 128-bit integers; what does not fit saturates: a lower bound stays
// valid, an upper bound becomes unbounded. Differences are taken between counts, so that only counts have to fit.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/model/nvme.h"

namespace ssdpulse::analysis {

using model::Uint128;

inline constexpr Uint128 kUnbounded = ~Uint128{0};

constexpr Uint128 add(Uint128 a, Uint128 b) { return a > kUnbounded - b ? kUnbounded : a + b; }
constexpr Uint128 subtract(Uint128 a, Uint128 b) { return a > b ? a - b : 0; }
constexpr Uint128 multiply(Uint128 a, Uint128 b) { return b != 0 && a > kUnbounded / b ? kUnbounded : a * b; }

using model::most_bytes_in;

/// Bytes: at least `low`, at most `high`.
struct Interval {
  Uint128 low = 0;
  Uint128 high = 0;

  template <typename Self, typename Archive>
  static void archive(Self& self, Archive& fields) {
    fields(self.low, self.high);
  }
};

constexpr Interval add(Interval a, Interval b) { return {add(a.low, b.low), add(a.high, b.high)}; }
/// The growth, between two moments, of something that only grows: never below 0.
constexpr Interval subtract(Interval a, Interval b) { return {subtract(a.low, b.high), subtract(a.high, b.low)}; }

/// The counts between which a counter stood at the moment in question.
struct CountRange {
  Uint128 low = 0;
  Uint128 high = 0;

  template <typename Self, typename Archive>
  static void archive(Self& self, Archive& fields) {
    fields(self.low, self.high);
  }
};

/// What one step of a counter is worth.
class CounterFormat {
 public:
  CounterFormat() = default;
  explicit CounterFormat(const model::ByteCounter& counter)
      : unit_(counter.unit_bytes), rounding_(counter.unit_bytes == 0 ? model::Rounding::unknown : counter.rounding) {}

  bool operator==(const CounterFormat&) const = default;
  [[nodiscard]] bool known() const { return unit_ != 0; }
  [[nodiscard]] model::ByteCounter counter(Uint128 count) const { return {count, unit_, rounding_}; }

  /// Bytes in `counts` units. An unknown unit counts as kUnknownUnit: correct in ratios of counters that share it.
  [[nodiscard]] Uint128 bytes(Uint128 counts) const { return multiply(counts, step()); }
  [[nodiscard]] Interval interval(CountRange counts) const;
  /// Bytes from one moment to a later one.
  [[nodiscard]] Interval difference(CountRange from, CountRange to) const;
  /// How many bytes a difference of counts can be off by.
  [[nodiscard]] Uint128 doubt() const { return above() + below(); }
  /// Converts bytes that were counted while the unit was unknown into this format.
  [[nodiscard]] Uint128 relearn(Uint128 bytes) const { return multiply(bytes / kUnknownUnit, step()); }
  [[nodiscard]] Interval relearn(Interval bytes) const { return {relearn(bytes.low), relearn(bytes.high)}; }

  template <typename Self, typename Archive>
  static void archive(Self& self, Archive& fields) {
    fields(self.unit_, self.rounding_);
  }

 private:
  static constexpr Uint128 kUnknownUnit = Uint128{64} << 20;

  [[nodiscard]] Uint128 step() const { return known() ? unit_ : kUnknownUnit; }
  // Nothing is known about the grain of an unknown unit, so its doubt is the whole unit, not one byte less.
  [[nodiscard]] Uint128 grain() const { return known() ? unit_ - 1 : kUnknownUnit; }
  [[nodiscard]] Uint128 below() const { return rounding_ == model::Rounding::exact ? 0 : grain(); }
  [[nodiscard]] Uint128 above() const { return rounding_ == model::Rounding::unknown ? grain() : 0; }

  std::uint64_t unit_ = 0;
  model::Rounding rounding_ = model::Rounding::unknown;
};

/// A ratio and its bounds, which are rounded outwards.
struct RatioBounds {
  double lower = 0;
  double ratio = 0;
  double upper = 0;
};

/// The last steps of the arithmetic use doubles: the bounds are moved outwards by more than all rounding errors.
RatioBounds rounded_outwards(RatioBounds bounds);

/// Whether the bounds are narrow enough to show the ratio.
bool worth_showing(const RatioBounds& bounds);

/// media/host; absent if the host may have written nothing, the media certainly wrote nothing, or either is unbounded.
std::optional<RatioBounds> ratio_of(Interval media, Interval host);

}  // namespace ssdpulse::analysis
