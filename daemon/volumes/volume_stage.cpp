// SPDX-License-Identifier: Apache-2.0
#include "daemon/volumes/volume_stage.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/model/latency_buckets.h"

namespace ssdpulse::volumes {
namespace {

using model::BioIo;
using model::BioOperation;
using model::FloorTime;
using model::Operation;
using model::RecentBios;

constexpr std::array kTimed{Operation::read, Operation::write};
constexpr std::chrono::seconds kBetweenMarks{5};
constexpr std::chrono::seconds kWindow{60};
/// Fewer say too little about a mean.
constexpr std::uint64_t kMinEnded = 50;
/// Bios that began below before the window, or end after it, are few of many.
constexpr double kSameNumber = 0.01;

/// What one operation of a device did between two readings.
struct Interval {
  model::LatencyBuckets buckets;
  std::uint64_t ended = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;  // of all bios that ended
};

std::optional<Interval> interval_between(const BioOperation& before, const BioOperation& now) {
  auto buckets = model::added(before.latency.words, now.latency.words);
  if (!buckets || now.bytes < before.bytes || now.latency.sum_ns < before.latency.sum_ns) {
    return std::nullopt;
  }
  const std::uint64_t ended = model::count(*buckets);
  return Interval{std::move(*buckets), ended, now.bytes - before.bytes,
                  static_cast<double>(now.latency.sum_ns - before.latency.sum_ns) / 1e9};
}

struct DeviceInterval {
  std::array<Interval, kTimed.size()> of;
};
using Intervals = std::map<std::string, DeviceInterval, std::less<>>;

Intervals intervals_between(const Bios& before, const Bios& now) {
  Intervals intervals;
  auto earlier = before.begin();
  for (const auto& io : now) {
    earlier = std::find_if(earlier, before.end(), [&](const auto& one) { return one->device >= io->device; });
    if (earlier == before.end()) {
      break;
    }
    if ((*earlier)->device != io->device || (*earlier)->since != io->since) {
      continue;
    }
    DeviceInterval device;
    bool good = true;
    for (std::size_t i = 0; i < kTimed.size(); ++i) {
      auto interval =
          interval_between((*earlier)->operations[model::index(kTimed[i])], io->operations[model::index(kTimed[i])]);
      good = good && interval;
      device.of[i] = std::move(interval).value_or(Interval());
    }
    if (good) {
      intervals.emplace(io->device, std::move(device));
    }
  }
  return intervals;
}

std::optional<RecentBios::Latency> latency_of(const Interval& interval) {
  if (interval.ended == 0) {
    return std::nullopt;
  }
  const auto quantile = [&](double share) {
    return model::upper_bound_seconds(model::quantile_bucket(interval.buckets, share));
  };
  return RecentBios::Latency{interval.ended, interval.seconds / static_cast<double>(interval.ended), quantile(0.5),
                             quantile(0.99)};
}

/// Volumes that lie on the same members, directly or through one another's members.
struct Floor {
  std::set<std::string> volumes;
  std::set<std::string> members;
};

std::vector<Floor> floors_of(const std::vector<model::Layer>& layers) {
  std::vector<Floor> floors;
  for (const model::Layer& layer : layers) {
    Floor floor{{layer.name}, {layer.members.begin(), layer.members.end()}};
    if (floor.members.empty()) {
      continue;
    }
    const auto shares = [&](const Floor& other) {
      return std::any_of(other.members.begin(), other.members.end(),
                         [&](const std::string& member) { return floor.members.contains(member); });
    };
    for (Floor& other : floors) {
      if (shares(other)) {
        floor.volumes.merge(other.volumes);
        floor.members.merge(other.members);
        other.members.clear();
      }
    }
    std::erase_if(floors, [](const Floor& other) { return other.members.empty(); });
    floors.push_back(std::move(floor));
  }
  return floors;
}

struct Sum {
  std::uint64_t ended = 0;
  double seconds = 0;
};

/// Nothing if one of them is not known.
std::optional<Sum> sum_of(const std::set<std::string>& devices, const Intervals& intervals, std::size_t operation) {
  Sum sum;
  for (const std::string& device : devices) {
    const auto found = intervals.find(device);
    if (found == intervals.end()) {
      return std::nullopt;
    }
    sum.ended += found->second.of[operation].ended;
    sum.seconds += found->second.of[operation].seconds;
  }
  return sum;
}

std::optional<FloorTime> time_of(const Floor& floor, const Intervals& intervals, std::size_t operation) {
  const auto above = sum_of(floor.volumes, intervals, operation);
  const auto below = sum_of(floor.members, intervals, operation);
  if (!above || !below || above->ended < kMinEnded) {
    return std::nullopt;
  }
  const auto ended = static_cast<double>(above->ended);
  return FloorTime{{floor.volumes.begin(), floor.volumes.end()},
                   {floor.members.begin(), floor.members.end()},
                   kTimed[operation],
                   above->ended,
                   above->seconds / ended,
                   std::max(0.0, (above->seconds - below->seconds) / ended),
                   std::abs(static_cast<double>(below->ended) - ended) <= kSameNumber * ended};
}

}  // namespace

model::VolumeFigures figures_between(const Bios& before, const Bios& now, double seconds,
                                     const std::vector<model::Layer>& layers) {
  model::VolumeFigures figures;
  figures.seconds = seconds;
  const Intervals intervals = intervals_between(before, now);
  for (const auto& [device, interval] : intervals) {
    figures.devices.push_back({device, static_cast<double>(interval.of[0].bytes) / seconds,
                               static_cast<double>(interval.of[1].bytes) / seconds, latency_of(interval.of[0]),
                               latency_of(interval.of[1])});
  }
  for (const Floor& floor : floors_of(layers)) {
    for (std::size_t operation = 0; operation < kTimed.size(); ++operation) {
      if (auto time = time_of(floor, intervals, operation)) {
        figures.floors.push_back(std::move(*time));
      }
    }
  }
  return figures;
}

model::Findings Volumes::observe(const model::Tick& tick) {
  if (tick.bios.empty()) {
    marks_.clear();
    figures_ = nullptr;
    return {};
  }
  if (marks_.empty() || tick.at - marks_.back().at >= kBetweenMarks) {
    marks_.push_back({tick.at, tick.bios});
    while (marks_.size() > 2 && tick.at - marks_[1].at >= kWindow) {
      marks_.pop_front();
    }
    const double seconds = std::chrono::duration<double>(tick.at - marks_.front().at).count();
    if (marks_.size() > 1) {
      figures_ = std::make_shared<const model::VolumeFigures>(
          figures_between(marks_.front().bios, tick.bios, seconds, tick.inventory->layers));
    }
  }
  return {[figures = figures_](model::Snapshot& snapshot) { snapshot.volume_figures = figures; }};
}

}  // namespace ssdpulse::volumes
