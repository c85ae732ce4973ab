// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/page_sample.h"

namespace ssdpulse::analysis {

unsigned PageSample::rate_bits_for(std::uint64_t drive_pages, std::uint64_t wanted_pages) {
  unsigned bits = 0;
  while (bits < kMaxRateBits && drive_pages >> bits >= wanted_pages + wanted_pages / 2) {
    ++bits;
  }
  return bits;
}

}  // namespace ssdpulse::analysis
