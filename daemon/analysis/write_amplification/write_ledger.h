// SPDX-License-Identifier: Apache-2.0
// WriteLedger: the write amplification that follows from a drive's counters of host and media writes, with bounds.
// One drive and one source of counters: fed one sample per poll, it keeps totals that continue when counters are reset,
// and the ratios of several windows. It has no clock, no thread and no I/O; the same samples give the same results.
//
// Epochs. A fallen counter, another firmware or another unit starts a new epoch: no window spans two epochs, totals
// continue (written_total.h has the rule). Another serial number is another drive: everything starts over. Samples are
// trusted here: checked_ledger.h filters out what a drive may misreport.
// Bounds. The true ratio of a covered window lies within them, whatever granularity, rounding, the time between the
// reads of one sample and rarely updated counters hide (the latter as far as counter_lag.h covers them). A ratio is
// reported only while its bounds are narrow. A counter at all-ones has saturated and means nothing. Where both counters
// are refreshed together, a window may begin and end at refreshes instead; its bounds then allow for two refreshes that
// are a little apart, but not for two that only happened to fall between the same polls. A ratio below 1 that no buffer
// explains is not reported, unless the drive compresses.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/analysis/write_amplification/counter_interval.h"
#include "daemon/analysis/write_amplification/counter_lag.h"
#include "daemon/analysis/write_amplification/host_drift.h"
#include "daemon/analysis/write_amplification/ratio_windows.h"
#include "daemon/analysis/write_amplification/wear_rate.h"
#include "daemon/analysis/write_amplification/written_total.h"
#include "daemon/model/nvme.h"
#include "daemon/util/result.h"

namespace ssdpulse::analysis {

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

  /// A sample that is not accepted, but may show a real fall since the last accepted one: opens an epoch, in case it
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
  [[nodiscard]] Uint128 most_since(Time at, const CounterLag& lag) const;
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

}  // namespace ssdpulse::analysis
