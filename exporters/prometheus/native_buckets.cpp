// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/native_buckets.h"

namespace ssdpulse::exposition {

NativeBuckets native_buckets(std::span<const std::uint64_t> counts, std::int32_t first_index) {
  NativeBuckets result;
  std::int64_t previous = 0;
  std::int32_t gap = first_index;  // an index at first, relative to the end of the last span afterwards
  bool in_span = false;
  for (const std::uint64_t count : counts) {
    if (count == 0) {
      // After an open span, the gap counts from its end.
      gap = in_span ? 1 : gap + 1;
      in_span = false;
      continue;
    }
    if (in_span) {
      ++result.spans.back().length;
    } else {
      result.spans.push_back({gap, 1});
      in_span = true;
    }
    const auto value = static_cast<std::int64_t>(count);
    result.deltas.push_back(value - previous);
    previous = value;
  }
  return result;
}

}  // namespace ssdpulse::exposition
