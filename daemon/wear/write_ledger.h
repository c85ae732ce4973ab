// SPDX-License-Identifier: Apache-2.0
// WriteLedger: the write amplification that follows from a drive's counters of host and media writes, with bounds.
// One drive and one source of counters: fed one sample per poll, it keeps totals that continue when counters are reset,
// and the ratios of several windows. It has no clock, no thread and no I/O; the same samples give the same results.
//
// Epochs. A fallen counter, another firmware or another unit starts a new epoch: no window spans two epochs, totals
// continue (counted_bytes.h has the rule). Another serial number is another drive: everything starts over. Samples are
// trusted here: SampleGate filters out what a drive may misreport.
// Bounds. The true ratio of a covered window lies within them, whatever granularity, rounding, the time between the
// reads of one sample and rarely updated counters hide (the latter as far as CounterLag covers them). A ratio is
// reported only while its bounds are narrow. A counter at all-ones has saturated and means nothing. Where both counters
// are refreshed together, a window may begin and end at refreshes instead; its bounds then allow for two refreshes that
// are a little apart, but not for two that only happened to fall between the same polls. A ratio below 1 that no buffer
// explains is not reported, unless the drive compresses.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/model/nvme_drive.h"
#include "daemon/wear/counted_bytes.h"
#include "daemon/wear/host_drift.h"

namespace ssdpulse::wear {

/// Both counters at one time; the host's may have moved between the reads around the media's.
struct WritePoint {
  std::chrono::nanoseconds at{0};
  CountRange host;
  Uint128 media = 0;
};

/// The readings behind the windows of 5 minutes, an hour, a day and a week. Keeps the readings of one
/// epoch that are needed: all of the last 5 minutes (at least 2 s apart), one per minute for the last hour, one per 10
/// minutes for the last day, one per hour for the last week; fewer than 500 in all. Knows nothing about units.
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

/// How long until the drive's rated endurance is used up, judging by the percentage that it reports. Remembers
/// when each of the last few percentages was first seen; a rate needs a rise of 2 points among them. A percent that
/// lasts longer than the average of those before it shows by itself that wear has slowed down.
class WearRate {
 public:
  using Time = std::chrono::nanoseconds;

  /// `used`: 0.01 = one percent. A fall starts over.
  void observe(Time at, double used);
  [[nodiscard]] std::optional<model::LifeRemaining> life_remaining() const;
  /// The clock's zero has changed.
  void move_times(Time by);

  template <typename Self, typename Archive>
  static void archive(Self& self, Archive& fields) {
    fields(self.sightings_);
  }

  struct Sighting {
    std::int64_t percent = 0;
    Time first_at{0};

    template <typename Self, typename Archive>
    static void archive(Self& self, Archive& fields) {
      fields(self.percent, self.first_at);
    }
  };

 private:
  static constexpr std::size_t kMaxSightings = 16;  // of the recent past, not of the whole life

  std::vector<Sighting> sightings_;  // rising in both
  Time now_{0};                      // of the newest observation: set again after a restart
};

/// From the bytes that the media is rated for: `rate` bytes were written in `window_seconds`. Absent if nothing was.
std::optional<model::LifeRemaining> life_by_endurance(double rated, double written, double rate, double window_seconds);

/// One poll of a drive.
struct WriteSample {
  std::chrono::nanoseconds at{0};                 // CLOCK_BOOTTIME of the media read; for history, mapped to this boot
  std::chrono::system_clock::time_point wall;     // may jump: used only for what is stored
  std::optional<model::ByteCounter> host_before;  // the host's counter, read just before the media's and just after;
  std::optional<model::ByteCounter> media;        // all three the same reading if one page has both counters
  std::optional<model::ByteCounter> host_after;
  // The block layer's writes at the two reads of the host's counter; absent when not all namespaces are measured, and
  // in history.
  std::optional<BlockWrites> block_before;
  std::optional<BlockWrites> block_after;
  std::optional<std::uint64_t> block_largest_request_bytes;
  bool counted_since_birth = true;  // false for counters that an administrator may clear (FDP)
  bool compresses = false;          // the drive's media may receive less than the host writes
  std::string serial;
  std::string firmware;
  std::optional<double> percentage_used;  // 0.01 = one percent
  std::optional<model::ByteCounter> endurance_estimate;
};

/// No daemon is away for longer.
inline constexpr auto kLongestAbsence = std::chrono::hours(24 * 3650);

/// Data in a drive's protected buffer is written to the media later, even if the counters are prompt.
inline constexpr Uint128 kMaxBufferedBytes = Uint128{64} << 20;

class WriteLedger {
 public:
  using Time = std::chrono::nanoseconds;

  /// `poll_interval`: how often a drive is polled while it is written to.
  explicit WriteLedger(Time poll_interval) : poll_interval_(poll_interval) {}
  void set_poll_interval(Time interval) { poll_interval_ = interval; }

  /// Samples come in the order of `at`. One that lacks a counter does not count, except that the host's counter
  /// continues alone if media was never seen.
  void observe(const WriteSample& sample);

  /// A sample that is not accepted, but may show a real fall since the last accepted sample: opens an epoch, in case it
  /// does. `fell_further`: another fall followed, or that is unknown.
  void doubt(const WriteSample& sample, bool fell_further);
  /// Nothing before can be compared with anything after: the next sample opens an epoch, the lifetime ratio is lost.
  void interrupt();

  [[nodiscard]] model::WriteAmplification amplification() const;

  /// The newest sample that could be used; not one from remember().
  struct Newest {
    WriteSample sample;         // its counters, time, serial number and firmware
    bool timed;                 // false: its time is from a clock that may have been set since
    RatioWindows::Lags behind;  // a counter's growth may cover this much more time than passed between readings
  };
  [[nodiscard]] std::optional<Newest> newest() const;

  /// The newest epoch of this process: when it began, why, and what the counters showed, in their own units.
  struct Epoch {
    Time at;
    std::string cause;
    struct Counts {
      Uint128 host;
      Uint128 media;
    };
    Counts before;
    Counts then;
  };
  [[nodiscard]] const std::optional<Epoch>& epoch() const { return epoch_; }

  struct Staleness {
    Time lag;           // the values read may be this old
    Time stands_still;  // how long a counter has not moved although it should have
    bool stuck;         // see CounterLag::stuck()
  };
  [[nodiscard]] Staleness host_staleness() const { return staleness(host_lag_); }
  [[nodiscard]] Staleness media_staleness() const { return staleness(media_lag_); }

  /// Both counters move only now and then, and at the same times: windows may begin and end there.
  [[nodiscard]] bool refreshes_together() const {
    return refresh_.likely() && host_lag_.lag(poll_interval_) != Time{0} && media_lag_.lag(poll_interval_) != Time{0};
  }

  /// Everything except the windows, as text. To be stored together with the newest sample.
  [[nodiscard]] std::string save() const;
  /// `at`, `wall`: now, on both clocks.
  static util::Result<WriteLedger> restore(std::string_view text, Time poll_interval, Time at,
                                           std::chrono::system_clock::time_point wall);
  /// Call after restore() and before observe(), in the order of time, with samples that the saved state includes. They
  /// fill the windows and nothing else. (A ledger that could not be restored observes its history instead.)
  void remember(const WriteSample& sample);

 private:
  /// A sample whose counters can be used.
  struct Reading {
    Time at;
    CounterFormat host_format;
    CountRange host;
    CounterFormat media_format;
    std::optional<Uint128> media;
    std::optional<HostPoint> block;  // both sides of the host's writes
  };
  [[nodiscard]] static std::optional<Reading> usable(const WriteSample& sample);
  [[nodiscard]] static bool saturated(const WriteSample& sample);
  [[nodiscard]] Staleness staleness(const CounterLag& lag) const {
    return {lag.lag(poll_interval_), lag.stale_for(), lag.stuck()};
  }
  [[nodiscard]] bool comparable() const { return host_.format().known() == media_.format().known(); }

  void break_off();
  void meet_drive(const WriteSample& sample);
  void learn_units(const Reading& reading);
  void open_epoch(Time at, std::string cause, Epoch::Counts then);
  void begin_epoch(const Reading& reading, const std::string& firmware);
  [[nodiscard]] Time behind(const CounterLag& lag) const;
  [[nodiscard]] Uint128 max_written_since(Time at, const CounterLag& lag) const;
  [[nodiscard]] WrittenTotal::Passage passage_to(Time at, const CounterFormat& format, const CounterLag& lag) const;
  [[nodiscard]] Lifetime::CounterFall host_fall(const Reading& reading) const;
  [[nodiscard]] Lifetime::CounterFall media_fall(const Reading& reading) const;
  void watch_lag(const Reading& reading);
  void watch_refresh(const Reading& reading);
  void watch_idleness(const Reading& reading);
  void watch_drift(const Reading& reading);

  [[nodiscard]] std::vector<model::WriteAmplificationRatio> ratios(bool& impossible) const;
  [[nodiscard]] bool cannot_be(Interval media, Interval host) const;
  [[nodiscard]] std::optional<RatioWindows::Refreshed> refreshed(Time width) const;
  [[nodiscard]] std::optional<model::LifeRemaining> life_by_media() const;

  template <typename Self, typename Archive>
  static void archive(Self& self, Archive& fields) {
    fields(self.serial_, self.firmware_, self.since_, self.wall_, self.at_, self.counted_since_birth_,
           self.interrupted_, self.epochs_, self.epoch_at_, self.host_, self.media_, self.lifetime_, self.host_lag_,
           self.media_lag_, self.idle_media_, self.wear_);
  }

  Time poll_interval_;
  // Kept across restarts:
  std::optional<std::string> serial_;  // absent: no sample yet
  std::string firmware_;
  std::chrono::system_clock::time_point since_;
  std::chrono::system_clock::time_point wall_;
  Time at_{0};
  bool counted_since_birth_ = true;
  bool interrupted_ = false;  // the next reading opens an epoch, whatever it shows
  std::uint64_t epochs_ = 0;
  Time epoch_at_{0};
  WrittenTotal host_;
  WrittenTotal media_;
  Lifetime lifetime_;
  CounterLag host_lag_;
  CounterLag media_lag_;
  Uint128 idle_media_ = 0;
  WearRate wear_;
  // Not kept:
  unsigned readings_ = 0;  // used so far, as far as it matters whether there was more than one
  RatioWindows windows_;
  bool timed_ = false;
  std::optional<Epoch> epoch_;
  std::optional<HostPoint> block_;  // at the last reading
  HostDrift drift_;
  std::optional<Time> idle_since_;
  CommonRefresh refresh_;
  bool compresses_ = false;
  std::optional<model::ByteCounter> endurance_estimate_;
};

}  // namespace ssdpulse::wear
