// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/json.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace ssdpulse::page {

double seconds_of(model::WallTime time) {
  return static_cast<double>(std::chrono::round<std::chrono::milliseconds>(time.time_since_epoch()).count()) / 1000;
}

Json latency_of(std::uint8_t word) {
  const double seconds = live::upper_bound(word);
  return seconds == 0 ? 0.0 : std::stod(fmt::format("{:.4g}", seconds));
}

std::string run_of(const model::Snapshot& snapshot) {
  return fmt::format("{:.2f}", snapshot.process.start_time_seconds);
}

Json head_of(const model::Snapshot& snapshot) {
  return {{"run", run_of(snapshot)}, {"snapshot", snapshot.number}, {"taken_at", seconds_of(snapshot.taken_at)}};
}

}  // namespace ssdpulse::page
