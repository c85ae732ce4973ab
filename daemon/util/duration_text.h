// SPDX-License-Identifier: Apache-2.0
// Durations as people write them: 27 s, 1 min 27 s, 3 h 48 min, 6 d 3 h.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace ssdpulse::util {

/// The two largest units; below ten seconds with one decimal.
inline std::string duration_text(double seconds) {
  constexpr double kMaxDays = 1e6;
  if (!(seconds >= 10)) {  // also true for NaN
    return fmt::format("{:.3g} s", std::round(10 * std::max(0.0, seconds)) / 10);
  }
  const auto whole = static_cast<long long>(std::llround(std::min(seconds, kMaxDays * 86400)));
  const auto two = [](long long large, const char* unit, long long small, const char* part) {
    return fmt::format("{} {}", large, unit) + (small > 0 ? fmt::format(" {} {}", small, part) : "");
  };
  if (whole < 60) {
    return fmt::format("{} s", whole);
  }
  if (whole < 3600) {
    return two(whole / 60, "min", whole % 60, "s");
  }
  const long long minutes = std::llround(static_cast<double>(whole) / 60);
  if (minutes < 24 * 60) {
    return two(minutes / 60, "h", minutes % 60, "min");
  }
  const long long hours = std::llround(static_cast<double>(whole) / 3600);
  return two(hours / 24, "d", hours % 24, "h");
}

/// The note shown wherever the recorder's clock was not the host's, as in tests.
inline std::string time_scale_text(double scale) {
  return fmt::format("time is scaled: a minute of the history was {} of the host, and so are its dates",
                     duration_text(60 / scale));
}

}  // namespace ssdpulse::util
