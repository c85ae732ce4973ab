// SPDX-License-Identifier: Apache-2.0
// WearRate: how long until the drive's rated endurance is used up, judging by the percentage that it reports. Remembers
// when each of the last few percentages was first seen; a rate needs a rise of 2 points among them. A percent that
// lasts longer than the average of those before it shows by itself that wear has slowed down.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "daemon/model/nvme.h"

namespace ssdpulse::analysis {

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

}  // namespace ssdpulse::analysis
