// SPDX-License-Identifier: Apache-2.0
// usual_differences(): how far two short windows differ by chance, as seen on the device's last day.
//
// A few minutes know neither their own variance nor how alike neighbours are. The day before them does: two stretches
// of it, as long as the windows and as far apart, differ by nothing but chance, correlation and bursts included. Pure.
#pragma once

#include <optional>
#include <vector>

#include "daemon/analysis/comparison/estimate.h"
#include "daemon/model/past.h"

namespace ssdpulse::analysis::comparison {

struct WindowPair {
  std::size_t minutes_before = 0;  // measured
  std::size_t minutes_after = 0;
  std::size_t apart = 0;  // minutes from the beginning of one to that of the other
};

/// Of the difference of two log_values.
struct UsualDifferences {
  double variance = 0;
  double degrees = 0;  // of freedom of the variance
};

/// `day`: sums of the minutes that begin at `starts`. Stretches with fewer than `least` samples do not count. Absent if
/// what is left is too short to say.
std::optional<UsualDifferences> usual_differences(const MinuteSums& day, const std::vector<model::PastTime>& starts,
                                                  const Figure& figure, double least, const WindowPair& windows);

}  // namespace ssdpulse::analysis::comparison
