// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/room_trend.h"

#include <algorithm>
#include <iterator>

namespace ssdpulse::analysis {
namespace {

double seconds_between(model::SteadyTime begin, model::SteadyTime end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

std::optional<double> RoomTrend::rate_of(const std::deque<Reading>& readings, const Reading& now) {
  if (readings.empty() || now.at - readings.front().at < kShortest) {
    return std::nullopt;
  }
  const auto since = [&](const Reading& then) {
    return (static_cast<double>(then.available_bytes) - static_cast<double>(now.available_bytes)) /
           seconds_between(then.at, now.at);
  };
  const double rate = std::min(since(readings.front()), since(readings[readings.size() / 2]));
  return rate > 0 ? std::optional(rate) : std::nullopt;
}

std::map<util::OutsideText, double> RoomTrend::observe(const std::vector<model::FilesystemRoom>& rooms,
                                                       model::SteadyTime at) {
  std::map<util::OutsideText, double> rates;
  for (const model::FilesystemRoom& room : rooms) {
    // Another file system at the same mount point has another size, as has one that was extended.
    const std::pair key(room.mountpoint, room.size_bytes);
    std::deque<Reading>& readings = file_systems_[key];
    const Reading now{at, room.available_bytes};
    if (const auto rate = rate_of(readings, now)) {
      rates[room.mountpoint] = *rate;
    }
    if (readings.empty() || at - readings.back().at >= kStep) {
      readings.push_back(now);
    }
  }
  // One that is not among them may only be slow to answer.
  for (auto one = file_systems_.begin(); one != file_systems_.end();) {
    std::deque<Reading>& readings = one->second;
    while (!readings.empty() && readings.front().at < at - kWindow) {
      readings.pop_front();
    }
    one = readings.empty() ? file_systems_.erase(one) : std::next(one);
  }
  return rates;
}

}  // namespace ssdpulse::analysis
