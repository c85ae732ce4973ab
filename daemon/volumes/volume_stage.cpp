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

constexpr std::array kTimed{Operation::read, Operation::write, Operation::flush};
constexpr std::size_t kRead = 0, kWrite = 1, kFlush = 2;
constexpr std::chrono::seconds kBetweenMarks{5};
constexpr std::chrono::seconds kWindow{60};
/// Fewer say too little about a mean.
constexpr std::uint64_t kMinEnded = 50;
/// Bios that began below before the window or end after it, and those that are lost, are few of many.
constexpr double kFew = 0.01;

/// What one operation of a device did between two readings.
struct Interval {
  model::LatencyBuckets buckets;
  std::uint64_t ended = 0;
  std::uint64_t bytes = 0;
  std::uint64_t lost = 0;  // without a latency
  double seconds = 0;      // of all bios that ended
};

std::optional<Interval> interval_between(const BioOperation& before, const BioOperation& now) {
  auto buckets = model::added(before.latency.words, now.latency.words);
  if (!buckets || now.bytes < before.bytes || now.latency.sum_ns < before.latency.sum_ns) {
    return std::nullopt;
  }
  const std::uint64_t ended = model::count(*buckets);
  return Interval{std::move(*buckets), ended, now.bytes - before.bytes,
                  now.untimed + now.missed - before.untimed - before.missed,
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
  bool passes_on[kFlush] = {true, true};  // reads, writes: each bio as it is
  bool may_do_more = false;               // unless as many bios are below: its kind does not say
};

/// A layer of another kind reads in order to write, copies, or writes elsewhere: what it passes on says little about
/// it. What dm does whose UUID does not say it is seen by the number of bios below.
bool passes_on(model::LayerKind kind, std::size_t operation) {
  using Kind = model::LayerKind;
  switch (kind) {
    case Kind::lvm:
    case Kind::crypt:
    case Kind::linear:
    case Kind::dm:
    case Kind::raid0:
      return true;
    case Kind::verity:
    case Kind::raid1:
    case Kind::raid10:
      return operation == kRead;
    default:
      return false;
  }
}

/// LVM's own RAID is not known from its UUID, nor is what another program made of dm.
bool may_do_more(model::LayerKind kind) { return kind == model::LayerKind::lvm || kind == model::LayerKind::dm; }

std::vector<Floor> floors_of(const std::vector<model::Layer>& layers) {
  std::map<std::string, std::size_t> floor_of;  // by member
  std::vector<Floor> floors;
  for (const model::Layer& layer : layers) {
    if (layer.members.empty()) {
      continue;
    }
    Floor floor;
    floor.volumes.insert(layer.name);
    floor.members.insert(layer.members.begin(), layer.members.end());
    for (std::size_t operation = 0; operation < kFlush; ++operation) {
      floor.passes_on[operation] = passes_on(layer.kind, operation);
    }
    floor.may_do_more = may_do_more(layer.kind);
    std::set<std::size_t> joined;
    for (const std::string& member : layer.members) {
      if (const auto found = floor_of.find(member); found != floor_of.end()) {
        joined.insert(found->second);
      }
    }
    // The largest takes the others in: moving them from floor to floor would be quadratic.
    std::size_t at = floors.size();
    for (const std::size_t other : joined) {
      at = at == floors.size() || floors[other].volumes.size() > floors[at].volumes.size() ? other : at;
    }
    if (at == floors.size()) {
      floors.emplace_back();
      floors.back().passes_on[kRead] = floors.back().passes_on[kWrite] = true;
    }
    const auto join = [&](Floor& from) {
      for (const std::string& member : from.members) {
        floor_of[member] = at;
      }
      floors[at].volumes.merge(from.volumes);
      floors[at].members.merge(from.members);
      for (std::size_t operation = 0; operation < kFlush; ++operation) {
        floors[at].passes_on[operation] = floors[at].passes_on[operation] && from.passes_on[operation];
      }
      floors[at].may_do_more = floors[at].may_do_more || from.may_do_more;
      from = Floor();
    };
    join(floor);
    for (const std::size_t other : joined) {
      if (other != at) {
        join(floors[other]);
      }
    }
  }
  std::erase_if(floors, [](const Floor& floor) { return floor.volumes.empty(); });
  return floors;
}

struct Sum {
  std::uint64_t ended = 0;
  std::uint64_t bytes = 0;
  std::uint64_t lost = 0;
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
    const Interval& of = found->second.of[operation];
    sum.ended += of.ended;
    sum.bytes += of.bytes;
    sum.lost += of.lost;
    sum.seconds += of.seconds;
  }
  return sum;
}

std::optional<FloorTime> time_of(const Floor& floor, const Intervals& intervals, std::size_t operation) {
  const auto above = sum_of(floor.volumes, intervals, operation);
  const auto below = sum_of(floor.members, intervals, operation);
  const auto flushes = sum_of(floor.members, intervals, kFlush);
  if (!floor.passes_on[operation] || !above || !below || !flushes || above->ended < kMinEnded) {
    return std::nullopt;
  }
  const auto ended = static_cast<double>(above->ended);
  // What was remapped to a member is not seen there; what was lost may have been slow.
  const bool all_below = static_cast<double>(below->ended) >= (1 - kFew) * ended &&
                         static_cast<double>(below->bytes) >= (1 - kFew) * static_cast<double>(above->bytes) &&
                         static_cast<double>(above->lost + below->lost) <= kFew * ended;
  const bool as_many = std::abs(static_cast<double>(below->ended) - ended) <= kFew * ended;
  if (!all_below || (floor.may_do_more && !as_many)) {
    return std::nullopt;
  }
  // A write that is to follow a flush waits for one below first.
  const double flush_seconds = operation == kWrite ? flushes->seconds : 0;
  return FloorTime{{floor.volumes.begin(), floor.volumes.end()},
                   {floor.members.begin(), floor.members.end()},
                   kTimed[operation],
                   above->ended,
                   above->seconds / ended,
                   std::max(0.0, (above->seconds - below->seconds - flush_seconds) / ended),
                   as_many && flush_seconds == 0};
}

/// Whether nothing was added, removed, failed or remapped.
bool same_layers(const std::vector<model::Layer>& before, const std::vector<model::Layer>& now) {
  return std::equal(before.begin(), before.end(), now.begin(), now.end(), [](const auto& a, const auto& b) {
    return a.name == b.name && a.kind == b.kind && a.members == b.members && a.diskseq == b.diskseq;
  });
}

}  // namespace

model::VolumeFigures figures_between(const Bios& before, const Bios& now, double seconds,
                                     const std::vector<model::Layer>& layers) {
  model::VolumeFigures figures;
  figures.seconds = seconds;
  const Intervals intervals = intervals_between(before, now);
  for (const auto& [device, interval] : intervals) {
    figures.devices.push_back({device, static_cast<double>(interval.of[kRead].bytes) / seconds,
                               static_cast<double>(interval.of[kWrite].bytes) / seconds, latency_of(interval.of[kRead]),
                               latency_of(interval.of[kWrite])});
  }
  for (const Floor& floor : floors_of(layers)) {
    for (std::size_t operation = 0; operation < kFlush; ++operation) {
      if (auto time = time_of(floor, intervals, operation)) {
        figures.floors.push_back(std::move(*time));
      }
    }
  }
  return figures;
}

std::vector<model::SlowFloor> SlowFloors::observe(const std::vector<model::FloorTime>& floors,
                                                  std::chrono::seconds interval) {
  std::vector<model::SlowFloor> slow;
  auto before = std::exchange(known_, {});
  for (const model::FloorTime& floor : floors) {
    auto kept = before.extract(std::pair(floor.volumes, floor.operation));
    Known known = kept.empty() ? Known() : kept.mapped();
    if (known.slow_for >= kUsualAfter) {
      known.usual_own_seconds = floor.own_seconds;
    }
    const bool is_slow = known.learned >= kMinLearned &&
                         floor.own_seconds >= std::max(kMinOwnSeconds, kMinShare * floor.mean_seconds) &&
                         floor.own_seconds >= kTimesUsual * known.usual_own_seconds;
    if (is_slow) {
      ++known.proofs;
      known.slow_for += interval;
      if (known.proofs >= kProofs) {
        slow.push_back({floor, known.usual_own_seconds, known.slow_for});
      }
    } else {
      known.learned = std::min<std::chrono::seconds>(known.learned + interval, kLearningTime);
      known.usual_own_seconds += (floor.own_seconds - known.usual_own_seconds) *
                                 std::min(1.0, std::chrono::duration<double>(interval) / known.learned);
      known.slow_for = {};
      known.proofs = 0;
    }
    known_.emplace(std::pair(floor.volumes, floor.operation), known);
  }
  // Those with too few I/Os now keep what is usual.
  for (auto& [key, known] : before) {
    known.slow_for = {};
    known.proofs = 0;
    known_.emplace(key, known);
  }
  return slow;
}

model::Findings Volumes::observe(const model::Tick& tick) {
  if (tick.bios.empty() || !same_layers(layers_, tick.inventory->layers)) {
    layers_ = tick.inventory->layers;
    marks_.clear();
    slow_.forget();
    figures_ = nullptr;
  }
  if (tick.bios.empty()) {
    return {};
  }
  if (marks_.empty() || tick.at - marks_.back().at >= kBetweenMarks) {
    std::vector<model::SlowFloor> slow;
    if (!marks_.empty()) {
      const auto interval = tick.at - marks_.back().at;
      const double interval_seconds = std::chrono::duration<double>(interval).count();
      slow = slow_.observe(figures_between(marks_.back().bios, tick.bios, interval_seconds, layers_).floors,
                           std::chrono::round<std::chrono::seconds>(interval));
    }
    marks_.push_back({tick.at, tick.bios});
    while (marks_.size() > 2 && tick.at - marks_[1].at >= kWindow) {
      marks_.pop_front();
    }
    const double seconds = std::chrono::duration<double>(tick.at - marks_.front().at).count();
    if (marks_.size() > 1) {
      model::VolumeFigures figures = figures_between(marks_.front().bios, tick.bios, seconds, layers_);
      figures.slow = std::move(slow);
      figures_ = std::make_shared<const model::VolumeFigures>(std::move(figures));
    }
  }
  return {[figures = figures_](model::Snapshot& snapshot) { snapshot.volume_figures = figures; }};
}

}  // namespace ssdpulse::volumes
