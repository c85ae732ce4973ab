// SPDX-License-Identifier: Apache-2.0
// How many minutes in a row belong together? Pure.
#pragma once

#include <cstddef>
#include <span>

namespace ssdpulse::analysis::comparison {

struct BlockLength {
  std::size_t minutes = 0;
  double wanted = 0;           // what the series calls for; more than `minutes` if the window is too short for it
  double autocorrelation = 0;  // of one minute and the next
};

/// For the circular block bootstrap, by Politis and White (2004) with the correction of 2009: from the autocorrelations
/// up to where they vanish. At least 5 and the cube root of the number of minutes, at most an eighth of it.
BlockLength block_length(std::span<const double> series);

}  // namespace ssdpulse::analysis::comparison
