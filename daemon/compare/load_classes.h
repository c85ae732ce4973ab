// SPDX-License-Identifier: Apache-2.0
// match_load(): weights that make the loads of two windows comparable. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace ssdpulse::compare {

/// Bytes per second of one minute: read, written.
using Rates = std::array<double, 2>;

struct LoadMatch {
  double common = 0;           // share of minutes in classes that both windows have; the smaller of the two shares
  std::vector<double> before;  // weights of the minutes, 0 outside the common classes, else 1
  std::vector<double> after;   // they give each class the share that it has before
};

/// Of LoadMatch::common. Below this, a latency of one window says nothing about the other.
inline constexpr double kMinCommonShare = 0.5;

/// Minutes are sorted into classes by how much was read and written in them: up to five each for reads and writes,
/// equally wide in logarithms over all minutes of both windows. Each class spans at least a factor of 1.5, and
/// everything below 64 KiB/s is in one class.
LoadMatch match_load(const std::vector<Rates>& before, const std::vector<Rates>& after);

}  // namespace ssdpulse::compare
