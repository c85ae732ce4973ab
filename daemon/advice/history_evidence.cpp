// SPDX-License-Identifier: Apache-2.0
#include "daemon/advice/history_evidence.h"

namespace ssdpulse::advice {

static_assert(EvidenceSums::kMaxSpikes == history::Reader::kMaxMarks);

util::Result<std::map<std::string, DeviceEvidence>> read_history_evidence(history::Reader& history,
                                                                          const std::vector<std::string>& disks,
                                                                          model::WallTime now, double time_scale) {
  const auto known = history.devices_called({disks.begin(), disks.end()});
  if (!known) {
    return tl::make_unexpected(known.error());
  }
  const auto end = std::chrono::ceil<std::chrono::minutes>(now);
  const model::Window window{end - kReach, end};
  std::map<std::string, DeviceEvidence> evidence;
  for (const model::PastDevice& device : *known) {
    constexpr std::size_t kFewPoints = 2;  // minutes are read one by one
    const auto series = history.series(device, window, kFewPoints);
    if (!series) {
      return tl::make_unexpected(series.error());
    }
    EvidenceSums sums(*series, time_scale);
    const auto read = history.minutes(device, window, [&](model::MinuteOf&& minute) { sums.add(minute); });
    if (!read) {
      return tl::make_unexpected(read.error());
    }
    const auto far = history.series(device, {end - kReachOfDiscards, end}, kReachOfDiscards.count());
    if (!far) {
      return tl::make_unexpected(far.error());
    }
    sums.add_discards(*far);
    evidence.emplace(device.name, sums.take());
  }
  return evidence;
}

}  // namespace ssdpulse::advice
