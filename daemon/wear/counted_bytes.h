// SPDX-License-Identifier: Apache-2.0
// Interval: the bytes that a counter can stand for; CounterLag: how old its value can be; WrittenTotal and Lifetime:
// what it counted in the drive's life, even if it was reset in between. A counter of whole units shows that the true
// bytes lie in an interval; so do the difference of two readings, and the ratio of two differences. Exact, in unsigned
// 128-bit integers; what does not fit saturates: a lower bound stays valid, an upper bound becomes unbounded.
// Differences are taken between counts, so that only counts have to fit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/model/nvme_drive.h"

namespace ssdpulse::wear {

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

/// What else is known about writes at a reading: bytes since some fixed time, at least and at most. What is not
/// measured is unbounded, and so proves nothing.
struct WriteEvidence {
  Interval host{0, kUnbounded};   // according to the drive's own host counter
  Interval block{0, kUnbounded};  // according to the block layer
};

/// How old a counter's value can be when it is read.
/// Some drives update a counter only now and then. The readings alone show this much:
/// - If the counter was seen to change twice, its period is shorter than the time around both changes.
/// - If it did not move while certainly more was written than its granules (and the drive's write buffer) can hide, it
///   was stale for at least that long.
/// Covered: a counter with a fixed period between 3 poll intervals and an hour, from the first reading on (an hour is
/// assumed until two changes have been seen); and a counter with a varying period, once its longest stale stretch has
/// been seen. Not detected: a period below 3 poll intervals (the value is then older than it seems by less than that);
/// a varying period before its longest stretch; a stale host counter if the block layer is not measured.
class CounterLag {
 public:
  using Time = std::chrono::nanoseconds;

  /// A reading of the counter. `hidden`: how much can be written unnoticed.
  void observe(Time at, Uint128 count, const WriteEvidence& evidence, Uint128 hidden);

  /// The value read at t is that of some time in [t - lag, t]. 0 for a counter that follows every poll.
  [[nodiscard]] Time lag(Time poll_interval) const;

  /// At least the time between two updates of its value, so far as two changes have shown it; else an hour.
  [[nodiscard]] Time period() const { return shortest_period_; }

  /// How long it has been standing still although it should have moved.
  [[nodiscard]] Time stale_for() const { return last_ ? last_->stale_for : Time{0}; }

  /// It has stood still for longer than the shortest time around two changes, or was never seen to change twice.
  [[nodiscard]] bool stuck() const {
    return stale_for() > (shortest_period_ == kLongestPeriod ? Time{0} : shortest_period_);
  }

  /// Time has gone backwards: what was learned is kept.
  void forget_times() { last_.reset(), before_change_.reset(); }

  template <typename Self, typename Archive>
  static void archive(Self& self, Archive& fields) {
    fields(self.shortest_period_, self.longest_stale_);
  }

 private:
  static constexpr Time kLongestPeriod = std::chrono::hours(1);

  struct Reading {
    Time at;
    Uint128 count;
    Time unmoved_since;  // since when it may be standing still
    WriteEvidence then;  // and what was known about writes at that time
    Time stale_for{0};
  };

  std::optional<Reading> last_;
  std::optional<Time> before_change_;  // the reading before the last change
  Time shortest_period_ = kLongestPeriod;
  Time longest_stale_{0};
};

/// Whether a drive refreshes both counters at the same time, as most do that refresh them only now and then: each value
/// of one then belongs to one of the other, however old both are. Judged by successive moves; not kept across restarts.
class CommonRefresh {
 public:
  void observe(bool host_moved, bool media_moved) {
    moves_ = host_moved != media_moved ? 0 : moves_ + (host_moved ? 1 : 0);
  }
  [[nodiscard]] bool likely() const { return moves_ >= kMinMoves; }

  /// Between two polls, the two refreshes may still be apart. Had they been by more than this share of the polls'
  /// distance, one poll of so many would probably have fallen between them (the rule of three).
  [[nodiscard]] double share_apart() const { return 3.0 / (3.0 + static_cast<double>(moves_)); }

 private:
  static constexpr unsigned kMinMoves = 4;
  std::uint64_t moves_ = 0;  // of both since one last moved alone
};

// How falls are explained. A counter that fell has either restarted from zero (its value now comes on top), or was
// rolled back a little by a power loss (only its further growth comes on top). The rule: a counter that kept at least
// half of its value (a drive may lose minutes of counting, never half its life), or shows more than can have been
// written since a restart, was rolled back; any other restarted. The bounds of the lifetime's ratio cover both
// explanations of every fall; both counters fell for the same reason unless the rule says otherwise. Bytes written
// between the last reading before a fall and the fall are in no reading. A fall that one reading shows and the next has
// made up for may be an absurd page: the total treats it as such, the bounds cover all three cases. A fall that no
// reading shows cannot be seen. A leap beyond what any drive can have written is no written byte, even if the drive
// insists on it: the total goes on from where it was. A counter that soon comes back to the values before a fall or a
// leap continues from those.

/// How much one counter counted through all epochs.
class WrittenTotal {
 public:
  /// Whether `next` belongs to a different epoch than the readings so far.
  [[nodiscard]] bool breaks(const CounterFormat& format, CountRange next) const;

  /// A fall, with what would come on top if the counter had restarted.
  struct Fall {
    Interval if_restarted;
    bool restarted;  // by the rule
  };
  /// How the counter fell, if it did; `max_written`: bytes that can have been written since the last reading.
  [[nodiscard]] std::optional<Fall> fall(const CounterFormat& format, CountRange next, Uint128 max_written) const;

  /// Bytes that were counted before and are not in `next`. Also for a counter that did not fall: whole units hide some.
  [[nodiscard]] Interval lost(const CounterFormat& format, CountRange next) const;

  /// When an epoch begins, and what can have been written since the last reading.
  struct Passage {
    std::chrono::nanoseconds last_at;
    std::chrono::nanoseconds at;
    Uint128 writable;
  };
  /// Begins an epoch with `next`, after a fall or without one.
  void begin_epoch(const CounterFormat& format, CountRange next, const std::optional<Fall>& fall,
                   const Passage& passage);

  /// Within an epoch.
  void advance(const CounterFormat& format, CountRange next);

  [[nodiscard]] bool seen() const { return last_.has_value(); }
  [[nodiscard]] const CounterFormat& format() const { return format_; }
  [[nodiscard]] CountRange last() const { return last_.value_or(CountRange{}); }
  /// Best estimate of the bytes since birth; never decreases.
  [[nodiscard]] Uint128 bytes() const { return subtract(add(earlier_, format_.bytes(last().high)), overstated_); }
  /// Bytes since birth when the counter stood at `counts` in this epoch, if no fall was a restart.
  [[nodiscard]] Interval since_birth(CountRange counts) const { return add(earlier_bounds_, format_.interval(counts)); }
  /// Whether the drive's unit becomes known only now. (If it is no longer stated, it is the known one.)
  [[nodiscard]] bool would_learn(const CounterFormat& format) const {
    return seen() && !format_.known() && format.known();
  }
  void learn(const CounterFormat& format);

  template <typename Self, typename Archive>
  static void archive(Self& self, Archive& fields) {
    fields(self.format_, self.last_, self.earlier_, self.earlier_bounds_, self.overstated_);
  }

 private:
  /// The counter before a fall or a leap.
  struct Before {
    std::chrono::nanoseconds at;
    Uint128 shown;  // bytes
    Uint128 total;
  };
  [[nodiscard]] bool comes_back(Uint128 shown, std::chrono::nanoseconds at) const;
  void set_total(Uint128 total, Uint128 shown);

  [[nodiscard]] CounterFormat effective(const CounterFormat& format) const {
    return format.known() || !seen() ? format : format_;
  }

  CounterFormat format_;
  std::optional<CountRange> last_;
  // What was written before, beyond what the counter shows: by the rule, and assuming that no fall was a restart.
  Uint128 earlier_ = 0;
  Interval earlier_bounds_;
  Uint128 overstated_ = 0;        // bytes that the counter shows and that nothing can have written
  std::optional<Before> before_;  // not kept across restarts
};

/// The lifetime's ratio, with all explanations of all falls.
class Lifetime {
 public:
  using CounterFall = std::optional<WrittenTotal::Fall>;

  /// Call at the beginning of an epoch.
  void fell(const CounterFall& host, const CounterFall& media);
  /// The counters may have fallen, by what was lost, and have made up for it since.
  void may_have_fallen(const CounterFall& host, Interval host_lost, const CounterFall& media, Interval media_lost);
  /// The counters no longer cover the lifetime.
  void lose() { lost_ = true, falls_.clear(); }
  /// The unit has become known.
  void learn_host(const CounterFormat& format);
  void learn_media(const CounterFormat& format);

  /// `host`, `media`: bytes since birth if no fall was a restart.
  [[nodiscard]] std::optional<RatioBounds> ratio(Interval host, Interval media) const;

  template <typename Self, typename Archive>
  static void archive(Self& self, Archive& fields) {
    fields(self.lost_, self.falls_);
  }

  /// What one cause would add on top.
  struct Fall {
    Interval host;
    Interval media;
    bool restarted = false;

    template <typename Self, typename Archive>
    static void archive(Self& self, Archive& fields) {
      fields(self.host, self.media, self.restarted);
    }
  };

 private:
  static constexpr std::size_t kMaxFalls = 16;  // more than that, and there is no telling

  void add_falls(const CounterFall& host, const CounterFall& media, bool certain);

  bool lost_ = false;
  std::vector<Fall> falls_;
};

}  // namespace ssdpulse::wear
