// SPDX-License-Identifier: Apache-2.0
// DriveReadings: what the drive itself reports about a spike.
// Keeps the last readings of one drive's log pages, and compares those around a spike with each other and with what is
// normal for this drive. Garbage collection and heat are claimed from here alone.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/analysis/latency_spikes/io_window.h"
#include "daemon/analysis/latency_spikes/usual_media.h"
#include "daemon/model/nvme.h"

namespace ssdpulse::analysis {

struct DriveVerdict {
  bool complete = false;  // pages were read after the spike's end: nothing more will be known
  bool gc = false;
  bool thermal = false;
  std::map<std::string, double> evidence;
  std::vector<std::string> missing;  // why it says no more
};

class DriveReadings {
 public:
  static constexpr std::size_t kMost = 64;
  static constexpr double kOutrun = 1.5;                  // media writes against what is usual for what the host wrote
  static constexpr double kLeastExcessBytes = 256 << 10;  // and by so much, whatever the counters' units hide
  static constexpr double kHeatSeconds = 600;             // a flag that is on for longer is no news
  static constexpr double kFewFreeBlocks = 0.1;

  /// What the drive said last, at every tick; the same again is no reading. `healthy`: no spike now.
  void observe(const model::NvmeDrive& drive, bool healthy);

  [[nodiscard]] DriveVerdict judge(SteadyTime began, SteadyTime ended) const;

 private:
  struct Reading {
    SteadyTime at;
    std::optional<double> host_bytes;  // where the pages that count media writes were read now
    std::optional<double> media_bytes;
    double host_doubt_bytes = 0;  // a difference may be off by
    double media_doubt_bytes = 0;
    std::vector<model::NvmeValue> heat_events;  // counters, of the pages known by then
    std::vector<model::NvmeValue> gc_events;
    bool hot = false;  // flags
    std::optional<double> free_blocks;
    double usual_ratio = 1;  // as known then
    double usual_background = 0;
  };
  using Position = std::deque<Reading>::const_iterator;
  static Reading read(const model::NvmeDrive& drive);
  void learn_usual(const Reading& before, const Reading& now);
  // From the last reading before the spike up to `end`.
  void judge_media(Position first, const Position& end, DriveVerdict& verdict) const;
  static void judge_collection(const Reading& before, const Reading& after, DriveVerdict& verdict);
  void judge_heat(SteadyTime began, const Position& first, const Position& end, DriveVerdict& verdict) const;

  std::deque<Reading> readings_;
  std::optional<SteadyTime> media_at_;
  UsualMedia usual_;
  std::uint64_t epochs_ = 0;  // of the drive's write counters
  bool spoiled_ = false;      // by a spike since the last reading
};

}  // namespace ssdpulse::analysis
