// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/page_sample.h"

#include <algorithm>

namespace ssdpulse::analysis {

unsigned PageSample::rate_bits_for(std::uint64_t drive_pages, std::uint64_t wanted_pages) {
  unsigned bits = 0;
  while (bits < kMostRateBits && drive_pages >> bits >= wanted_pages + wanted_pages / 2) {
    ++bits;
  }
  return bits;
}

PageRange PageSample::followed(PageRange range) const {
  if (range.count == 0 || range.first >> rate_bits_ >= pages_) {
    return {};
  }
  const std::uint64_t end = std::min(range.first + range.count, pages_ << rate_bits_);
  std::uint64_t first = range.first >> rate_bits_;
  std::uint64_t last = (end - 1) >> rate_bits_;
  first += page_of(first) < range.first ? 1 : 0;
  // One before the first where nothing is left; no wrap, since the count is what follows.
  const std::uint64_t beyond = last + (page_of(last) < end ? 1 : 0);
  return first < beyond ? PageRange{first, beyond - first} : PageRange{};
}

}  // namespace ssdpulse::analysis
