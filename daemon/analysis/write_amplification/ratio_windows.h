// SPDX-License-Identifier: Apache-2.0
// RatioWindows: the readings behind the windows of 5 minutes, an hour, a day and a week. Keeps the readings of one
// epoch that are needed: all of the last 5 minutes (at least 2 s apart), one per minute for the last hour, one per 10
// minutes for the last day, one per hour for the last week; fewer than 500 in all. Knows nothing about units.
#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "daemon/analysis/write_amplification/counter_interval.h"

namespace ssdpulse::analysis {

/// Both counters at one time; the host's may have moved between the reads around the media's.
struct WritePoint {
  std::chrono::nanoseconds at{0};
  CountRange host;
  Uint128 media = 0;
};

class RatioWindows {
 public:
  using Time = std::chrono::nanoseconds;

  struct Named {
    const char* name;
    Time width;
  };
  static constexpr auto kNamed = std::to_array<Named>({{"5m", std::chrono::minutes(5)},
                                                       {"1h", std::chrono::hours(1)},
                                                       {"24h", std::chrono::hours(24)},
                                                       {"7d", std::chrono::hours(24 * 7)}});

  /// Points come in the order of time; a repeated time adds nothing. If a counter falls or time goes backwards,
  /// everything before that is forgotten.
  void add(const WritePoint& point);
  void clear() { points_.clear(); }

  /// How old the values of the two counters may be when they are read.
  struct Lags {
    Time host{0};
    Time media{0};
  };
  /// What the counters say about the true counts at one time.
  struct Moment {
    Time at;
    CountRange host;
    CountRange media;
  };
  struct Window {
    Moment begin;
    Moment end;
  };
  /// The newest moment about which everything is known.
  [[nodiscard]] std::optional<Moment> newest(const Lags& lags) const;
  /// The window that ends there and begins at the oldest kept moment within `width` of it.
  [[nodiscard]] std::optional<Window> window(Time width, const Lags& lags) const;

  /// For counters that are refreshed together: the window begins and ends at readings at which both had just moved.
  struct Refreshed {
    Window window;
    Uint128 host_steps;  // how far the host's counter moved in the refreshes at both ends
  };
  [[nodiscard]] std::optional<Refreshed> refreshed(Time width) const;

  /// The time of the newest reading.
  [[nodiscard]] Time newest_at() const { return points_.empty() ? Time{0} : points_.back().at; }
  [[nodiscard]] const std::vector<WritePoint>& points() const { return points_; }

 private:
  using Iterator = std::vector<WritePoint>::const_iterator;

  [[nodiscard]] Iterator newest_known(const Lags& lags) const;
  [[nodiscard]] Moment moment(Iterator point, const Lags& lags) const;
  [[nodiscard]] bool both_moved(Iterator point) const;
  void thin();

  std::vector<WritePoint> points_;
};

}  // namespace ssdpulse::analysis
