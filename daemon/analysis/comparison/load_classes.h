// SPDX-License-Identifier: Apache-2.0
// Was the load the same? Minutes are put into classes by what was read and written in them. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace ssdpulse::analysis::comparison {

/// Bytes per second of one minute: read, written.
using Rates = std::array<double, 2>;

struct LoadMatch {
  double common = 0;           // share of minutes in classes that both windows have: of the window with less
  std::vector<double> before;  // weights of the minutes, 0 outside of the common classes
  std::vector<double> after;   // such that each class has the share that it has before
};

/// Less than this, and a latency of one window says nothing of the other.
inline constexpr double kLeastCommon = 0.5;

/// Up to five classes for each of the two, equally wide in logarithms over all minutes of both windows: at least half
/// as much again, and all below 64 KiB/s is one.
LoadMatch match_load(const std::vector<Rates>& before, const std::vector<Rates>& after);

}  // namespace ssdpulse::analysis::comparison
