// SPDX-License-Identifier: Apache-2.0
// WrittenTotal: how much was written in the drive's life, even if its counters were reset in between.
// A counter that fell has either restarted from zero (its value now comes on top), or was rolled back a little by a
// power loss (only its further growth comes on top). The rule: a counter that kept at least half of its value (a drive
// may lose minutes of counting, never half its life), or shows more than can have been written since a restart, was
// rolled back; any other restarted. The bounds of the lifetime's ratio cover both explanations of every fall; both
// counters fell for the same reason unless the rule says otherwise. Bytes written between the last reading before a
// fall and the fall are in no reading. A fall that one reading shows and the next has made up for may be an absurd
// page: the total treats it as one, the bounds cover all three cases. A fall that no reading shows cannot be seen.
// A leap beyond what any drive can have written is no written byte, even if the drive insists on it: the total goes on
// from where it was. A counter that soon comes back to the values before a fall or a leap continues from those.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "daemon/analysis/write_amplification/counter_interval.h"

namespace ssdpulse::analysis {

/// One counter through all epochs.
class WrittenTotal {
 public:
  /// Whether `next` belongs to a different epoch than the readings so far.
  [[nodiscard]] bool breaks(const CounterFormat& format, CountRange next) const;

  /// A fall, with what would come on top if the counter had restarted.
  struct Fall {
    Interval if_restarted;
    bool restarted;  // by the rule
  };
  /// How the counter fell, if it did; `most`: bytes that can have been written since the last reading.
  [[nodiscard]] std::optional<Fall> fall(const CounterFormat& format, CountRange next, Uint128 most) const;

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
  /// Call at the beginning of an epoch.
  using CounterFall = std::optional<WrittenTotal::Fall>;
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

}  // namespace ssdpulse::analysis
