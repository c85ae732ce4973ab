// SPDX-License-Identifier: Apache-2.0
// RoomTrend: how fast file systems fill, from how much room they had over the last hours. A rate is reported only where
// the whole time and its second half agree that they do: files that come and go are no trend.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/model/clock.h"
#include "daemon/model/host_signals.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::analysis {

class RoomTrend {
 public:
  static constexpr std::chrono::minutes kStep{1};    // between two readings that are kept
  static constexpr std::chrono::hours kWindow{6};    // over which they are
  static constexpr std::chrono::hours kShortest{1};  // from which on there is a rate

  /// Bytes a second by which each of these file systems fills, by mount point; those that do not are left out.
  std::map<util::OutsideText, double> observe(const std::vector<model::FilesystemRoom>& rooms, model::SteadyTime at);

 private:
  struct Reading {
    model::SteadyTime at;
    std::uint64_t available_bytes = 0;
  };
  static std::optional<double> rate_of(const std::deque<Reading>& readings, const Reading& now);

  std::map<std::pair<util::OutsideText, std::uint64_t>, std::deque<Reading>> file_systems_;  // by mount point and size
};

}  // namespace ssdpulse::analysis
