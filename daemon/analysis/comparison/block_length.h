// SPDX-License-Identifier: Apache-2.0
// block_length(): the number of consecutive minutes that belong together, as a block of the bootstrap. Pure.
#pragma once

#include <cstddef>
#include <span>

namespace ssdpulse::analysis::comparison {

struct BlockLength {
  std::size_t minutes = 0;
  double wanted = 0;           // minutes that the series calls for; more than `minutes` if the window is too short
  double autocorrelation = 0;  // of one minute and the next; 0 if it is not known
};

/// For the circular block bootstrap, by Politis and White (2004) with the correction of 2009: from the autocorrelations
/// up to where they vanish. At least 5 minutes and the cube root of their number, at most an eighth of it. `series`:
/// one value per minute.
BlockLength block_length(std::span<const double> series);

}  // namespace ssdpulse::analysis::comparison
