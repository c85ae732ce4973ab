// SPDX-License-Identifier: Apache-2.0
// What does the drive itself say of a spike?
// Keeps the last readings of one drive's log pages, and compares those around a spike with each other and with what is
// normal of this drive. Garbage collection and heat are claimed from here alone.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "daemon/analysis/latency_spikes/io_window.h"
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
  static constexpr double kOutrun = 1.5;                     // media writes against what they normally are
  static constexpr double kLeastExcessBytes = 256 << 10;     // and by so much, and by two of the counter's units
  static constexpr double kLeastNormalBytes = 1 << 20;       // of the host, before its ratio is believed
  static constexpr double kNormalBytes = double{1LL << 36};  // of the host, after which the past counts half
  static constexpr double kHeatSeconds = 600;                // a flag that is on for longer is no news
  static constexpr double kFewFreeBlocks = 0.1;

  /// What the drive said last, at every tick; the same again is no reading. `healthy`: no spike now.
  void observe(const model::NvmeDrive& drive, bool healthy);

  [[nodiscard]] DriveVerdict judge(SteadyTime began, SteadyTime ended) const;

 private:
  struct Reading {
    SteadyTime at;
    std::optional<double> host_bytes;  // where the pages that count media writes were read now
    std::optional<double> media_bytes;
    double unit_bytes = 1;
    double heat_events = 0;  // counters added up
    bool hot = false;        // flags
    std::optional<double> free_blocks;
    std::optional<double> gc_events;
    double normal_ratio = 1;  // as known then
  };
  static Reading read(const model::NvmeDrive& drive);
  void learn_normal(const Reading& before, const Reading& now);
  static void judge_media(const std::deque<Reading>& readings, DriveVerdict& verdict);
  void judge_heat(SteadyTime began, const std::deque<Reading>& readings, DriveVerdict& verdict) const;

  std::deque<Reading> readings_;
  std::optional<SteadyTime> media_at_;
  double normal_host_ = 0;
  double normal_media_ = 0;
  double normal_ratio_ = 1;
  bool spoiled_ = false;  // by a spike since the last reading
};

}  // namespace ssdpulse::analysis
