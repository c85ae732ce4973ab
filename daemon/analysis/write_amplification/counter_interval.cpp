// SPDX-License-Identifier: Apache-2.0
// Interval arithmetic on counts: see the header.
#include "daemon/analysis/write_amplification/counter_interval.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::analysis {

Interval CounterFormat::interval(CountRange counts) const {
  return {subtract(bytes(counts.low), below()), add(bytes(counts.high), above())};
}

Interval CounterFormat::difference(CountRange from, CountRange to) const {
  return {subtract(bytes(subtract(to.low, from.high)), doubt()), add(bytes(subtract(to.high, from.low)), doubt())};
}

RatioBounds rounded_outwards(RatioBounds bounds) {
  constexpr double kRounding = 0x1p-48;
  bounds.lower *= 1 - kRounding;
  bounds.upper *= 1 + kRounding;
  bounds.ratio = std::clamp(bounds.ratio, bounds.lower, bounds.upper);
  return bounds;
}

bool worth_showing(const RatioBounds& bounds) {
  constexpr double kWidest = 0.2;
  return std::isfinite(bounds.upper) && bounds.ratio > 0 && bounds.upper - bounds.lower <= kWidest * bounds.ratio;
}

std::optional<RatioBounds> ratio_of(Interval media, Interval host) {
  if (host.low == 0 || host.high == kUnbounded || media.high == 0 || media.high == kUnbounded) {
    return std::nullopt;
  }
  const auto middle = [](Interval bytes) {
    return (static_cast<double>(bytes.low) + static_cast<double>(bytes.high)) / 2;
  };
  return rounded_outwards({static_cast<double>(media.low) / static_cast<double>(host.high),
                           middle(media) / middle(host),
                           static_cast<double>(media.high) / static_cast<double>(host.low)});
}

}  // namespace ssdpulse::analysis
