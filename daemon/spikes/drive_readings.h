// SPDX-License-Identifier: Apache-2.0
// DriveReadings: what the drive itself reports about a spike. Keeps the last readings of one drive's log pages, and
// compares those around a spike with each other and with what is normal for this drive. Only these readings can show
// garbage collection or heat as a cause. UsualMedia learns how much the drive writes to its media when nothing is
// wrong. Pure.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/nvme_drive.h"
#include "daemon/spikes/io_window.h"

namespace ssdpulse::spikes {

/// ratio x host bytes + background x time: what the host's writes cost, and what the drive writes by itself. Both are
/// learned from healthy intervals between two readings of its counters, robustly: a single odd interval moves neither.
/// The two can only be separated if the host wrote more at one time than at another. Otherwise everything beyond the
/// host's own bytes counts as background, so that the expectation for an interval with fewer host writes is never too
/// low.
class UsualMedia {
 public:
  static constexpr std::size_t kMaxIntervals = 64;  // intervals that count: half an hour of readings, or more
  static constexpr double kMinBytes = 1 << 20;      // in an interval; a smaller one is added to the next,
  static constexpr double kMinUncertainties = 8;    // as is one below this multiple of what the counters' units hide
  static constexpr double kDifferentLoad = 0.05;    // between host rates: two such intervals show what a byte costs
  static constexpr double kLowerQuartile = 0.25;    // of these costs: if they scatter, the background is larger

  /// Learns from a healthy interval; `doubt_bytes`: how far off its differences may be.
  void learn(double host_bytes, double media_bytes, double seconds, double doubt_bytes);
  /// Totals of the drive's whole life: used until there is an interval.
  void learn_life(double host_bytes, double media_bytes, double doubt_bytes);

  [[nodiscard]] double ratio() const { return ratio_; }            // at least 1
  [[nodiscard]] double background() const { return background_; }  // bytes per second

 private:
  struct Interval {
    double host = 0;  // bytes, in `begun_`; bytes per second, once it counts
    double media = 0;
    double seconds = 0;
  };
  void estimate();

  Interval begun_;
  std::deque<Interval> intervals_;
  double ratio_ = 1;
  double background_ = 0;
};

struct DriveVerdict {
  bool complete = false;  // pages were read after the spike's end: nothing more will become known
  bool gc = false;
  bool thermal = false;
  model::SpikeEvidence evidence;
  std::vector<std::string> missing;  // why there is no more evidence
};

class DriveReadings {
 public:
  static constexpr std::size_t kMaxReadings = 64;
  static constexpr double kOutrun = 1.5;                // media writes relative to the usual for these host writes
  static constexpr double kMinExcessBytes = 256 << 10;  // and this much more, beyond what the counters' units hide
  static constexpr double kHeatSeconds = 600;           // a flag that has been on for longer is not news
  static constexpr double kWarmerCelsius = 3;           // since the flag was off: confirms a single reading of it
  static constexpr double kFewFreeBlocks = 0.1;

  /// Call at every tick with the drive's latest data; unchanged data is not a new reading. `healthy`: no spike is open.
  void observe(const model::NvmeDrive& drive, bool healthy);

  [[nodiscard]] DriveVerdict judge(SteadyTime began, SteadyTime ended) const;

 private:
  struct Reading {
    SteadyTime at;
    std::optional<double> host_bytes;  // set if the pages that count media writes were read this time
    std::optional<double> media_bytes;
    double host_doubt_bytes = 0;  // how far off a difference may be
    double media_doubt_bytes = 0;
    std::vector<model::NvmeValue> heat_events;  // counters, from the pages known by then
    std::vector<model::NvmeValue> gc_events;
    bool hot = false;  // from flags
    std::optional<double> celsius;
    std::optional<double> free_blocks;
    double usual_ratio = 1;  // as known at that time
    double usual_background = 0;
  };
  using Position = std::deque<Reading>::const_iterator;
  static Reading read(const model::NvmeDrive& drive);
  void learn_usual(const Reading& before, const Reading& now);
  // From the last reading before the spike up to `end`.
  void judge_media(Position first, const Position& end, DriveVerdict& verdict) const;
  static void judge_collection(const Reading& before, const Reading& after, DriveVerdict& verdict);
  void judge_heat(SteadyTime began, const Position& first, const Position& end, DriveVerdict& verdict) const;
  [[nodiscard]] bool confirmed(Position hot) const;

  std::deque<Reading> readings_;
  std::optional<SteadyTime> media_at_;
  UsualMedia usual_;
  std::uint64_t epochs_ = 0;  // of the drive's write counters
  bool spoiled_ = false;      // by a spike since the last reading
};

}  // namespace ssdpulse::spikes
