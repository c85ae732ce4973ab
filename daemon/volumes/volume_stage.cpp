// SPDX-License-Identifier: Apache-2.0
#include "daemon/volumes/volume_stage.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "daemon/model/latency_buckets.h"
#include "daemon/model/latency_spike.h"

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
/// Bios for a proof that a floor is slow: fewer than for a mean, as there must be two of them.
constexpr std::uint64_t kMinEndedForProof = 20;
/// Of a floor's bios and of their time, for one of its volumes to be named.
constexpr double kNearlyAll = 0.9;
/// Of the time that something is in flight: from then on a drive may take no more.
constexpr double kBusyRatio = 0.9;
/// Bios that are not seen below, and those that are lost, are few of many.
constexpr double kFew = 0.01;
/// So are those that were below before the window or will be after it: as many as were in flight, at most.
constexpr double kFewInFlight = 0.05;

/// What one operation of a device did between two readings.
struct Interval {
  model::LatencyBuckets buckets;
  std::uint64_t ended = 0;
  std::uint64_t bytes = 0;
  std::uint64_t lost = 0;  // without a latency
  double seconds = 0;      // of all bios that ended
  double in_flight = 0;    // at its beginning or its end, whichever was more
};

std::optional<Interval> interval_between(const BioOperation& before, const BioOperation& now) {
  auto buckets = model::added(before.latency.words, now.latency.words);
  if (!buckets || now.bytes < before.bytes || now.latency.sum_ns < before.latency.sum_ns) {
    return std::nullopt;
  }
  const std::uint64_t ended = model::count(*buckets);
  return Interval{std::move(*buckets),
                  ended,
                  now.bytes - before.bytes,
                  now.untimed + now.missed - before.untimed - before.missed,
                  static_cast<double>(now.latency.sum_ns - before.latency.sum_ns) / 1e9,
                  static_cast<double>(std::max<std::int64_t>({before.in_flight, now.in_flight, 0}))};
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
  bool merges_flushes = false;            // md: several writes wait for one flush below
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

/// Whether one thread of the layer's own sends writes on. It sleeps where something below takes no more (writeback
/// throttling, RAID 5 without a free stripe), and what waits behind it is at no device yet. Reads are sent by who
/// reads.
bool sends_by_itself(model::LayerKind kind) { return kind == model::LayerKind::crypt || kind == model::LayerKind::dm; }

bool merges_flushes(model::LayerKind kind) {
  using Kind = model::LayerKind;
  return kind == Kind::raid0 || kind == Kind::raid1 || kind == Kind::raid10;
}

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
    floor.merges_flushes = merges_flushes(layer.kind);
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
      floors[at].merges_flushes = floors[at].merges_flushes || from.merges_flushes;
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
  double in_flight = 0;
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
    sum.in_flight += of.in_flight;
  }
  return sum;
}

/// The volume that had nearly all of the bios and of their time; empty: none did. What is known of the floor is then
/// known of it.
std::string heaviest_of(const Floor& floor, const Intervals& intervals, std::size_t operation, const Sum& sum) {
  const auto found = std::find_if(floor.volumes.begin(), floor.volumes.end(), [&](const std::string& volume) {
    const Interval& of = intervals.find(volume)->second.of[operation];
    return of.seconds >= kNearlyAll * sum.seconds &&
           static_cast<double>(of.ended) >= kNearlyAll * static_cast<double>(sum.ended);
  });
  return found == floor.volumes.end() ? "" : *found;
}

std::optional<FloorTime> time_of(const Floor& floor, const Intervals& intervals, std::size_t operation,
                                 std::uint64_t min_ended) {
  const auto above = sum_of(floor.volumes, intervals, operation);
  const auto below = sum_of(floor.members, intervals, operation);
  const auto flushes = sum_of(floor.members, intervals, kFlush);
  if (!floor.passes_on[operation] || !above || !below || !flushes || above->ended < min_ended) {
    return std::nullopt;
  }
  const auto ended = static_cast<double>(above->ended);
  // What was remapped to a member is not seen there; what was lost may have been slow.
  const double missing = ended - static_cast<double>(below->ended);
  const double few = std::max(kFew, std::min(kFewInFlight, above->in_flight / ended));
  const bool all_below = missing <= few * ended &&
                         static_cast<double>(below->bytes) >= (1 - few) * static_cast<double>(above->bytes) &&
                         static_cast<double>(above->lost + below->lost) <= kFew * ended;
  const bool as_many = std::abs(missing) <= few * ended;
  const bool merged = operation == kWrite && floor.merges_flushes && flushes->ended > 0;
  if (!all_below || merged || (floor.may_do_more && !as_many)) {
    return std::nullopt;
  }
  // A write that is to follow a flush waits for one below first.
  const double flush_seconds = operation == kWrite ? flushes->seconds : 0;
  const double mean_seconds = above->seconds / ended;
  const double missing_seconds = std::max(0.0, missing) * mean_seconds;  // as if all of it were spent below
  return FloorTime{{floor.volumes.begin(), floor.volumes.end()},
                   {floor.members.begin(), floor.members.end()},
                   kTimed[operation],
                   above->ended,
                   mean_seconds,
                   std::max(0.0, (above->seconds - below->seconds - flush_seconds - missing_seconds) / ended),
                   std::abs(missing) <= kFew * ended && flush_seconds == 0,
                   heaviest_of(floor, intervals, operation, *above),
                   static_cast<double>(above->bytes) / ended};
}

/// Layers that were added, removed, remapped, or lost a member. Both sorted by name.
std::vector<model::Layer> changed(const std::vector<model::Layer>& before, const std::vector<model::Layer>& now) {
  const auto key = [](const model::Layer& one) { return std::tie(one.name, one.kind, one.members, one.diskseq); };
  std::vector<model::Layer> differing;
  std::set_symmetric_difference(before.begin(), before.end(), now.begin(), now.end(), std::back_inserter(differing),
                                [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return differing;
}

/// The members of these layers, and of all that lies above them.
std::set<std::string> members_from(const std::vector<model::Layer>& changed, const std::vector<model::Layer>& layers) {
  std::set<std::string> volumes, members;
  std::vector<model::Layer> next = changed;
  while (!next.empty()) {
    std::vector<model::Layer> above;
    for (const model::Layer& layer : next) {
      members.insert(layer.members.begin(), layer.members.end());
      if (volumes.insert(layer.name).second) {
        std::copy_if(layers.begin(), layers.end(), std::back_inserter(above), [&](const model::Layer& one) {
          return std::find(one.members.begin(), one.members.end(), layer.name) != one.members.end();
        });
      }
    }
    next = std::move(above);
  }
  return members;
}

}  // namespace

model::VolumeFigures figures_between(const Bios& before, const Bios& now, double seconds,
                                     const std::vector<model::Layer>& layers, std::uint64_t min_ended) {
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
      if (auto time = time_of(floor, intervals, operation, min_ended)) {
        figures.floors.push_back(std::move(*time));
      }
    }
  }
  return figures;
}

void HoldUps::note(const std::string& device, model::SteadyTime at, bool of_reads) {
  Last& last = last_[device];
  last.of_writes = at;
  if (of_reads) {
    last.of_reads = at;
  }
}

void HoldUps::observe(const model::Tick& tick) {
  std::map<std::string, double> busy;
  if (tick.before) {
    for (const model::DeviceSnapshot& device : tick.before->devices) {
      if (device.utilisation && device.utilisation->busy_ratio) {
        busy[device.device->name] = *device.utilisation->busy_ratio;
      }
    }
    for (const auto* spikes : {&tick.before->spikes_going_on, &tick.before->spikes_unjudged}) {
      for (const model::LatencySpike& spike : *spikes) {
        note(spike.device, tick.at, false);
        spikes_[spike.device].push_back({tick.at, model::longest_wait_seconds(spike)});
      }
    }
  }
  measured_.clear();
  for (const model::DeviceTick& device : tick.devices) {
    const std::string& name = device.block.device->name;
    measured_.insert(name);
    const bool full =
        !device.interval || std::any_of(device.interval->operations.begin(), device.interval->operations.end(),
                                        [](const auto& one) { return one.queue_full_ns > 0; });
    const auto ratio = busy.find(name);
    // Reads are timed below before they wait for the drive, and the kernel's busy time is coarse: only writes, of which
    // a layer's own thread sends one after the other, may wait above a drive that is merely busy.
    if (full || ratio == busy.end() || ratio->second >= kBusyRatio) {
      note(name, tick.at, full);
    }
  }
  // Limits are read with tenants; where no hierarchy takes I/O, there are none.
  limits_known_ = tick.host && (tick.tenants || !tick.host->cgroups_unified);
  if (tick.host) {
    for (const model::IoLimit& limit : tick.host->limits) {
      note(limit.device, tick.at, true);
    }
    for (const model::VolumeSignals& volume : tick.host->volumes) {
      if (volume.suspended) {
        note(volume.volume, tick.at, true);
      }
    }
  }
  std::erase_if(last_, [&](const auto& one) { return tick.at - *one.second.of_writes > 2 * kWindow; });
  for (auto& [disk, spikes] : spikes_) {
    std::erase_if(spikes, [&](const Spike& one) { return tick.at - one.at > 2 * kWindow; });
  }
  std::erase_if(spikes_, [](const auto& one) { return one.second.empty(); });
  if (inventory_ == tick.inventory) {
    return;
  }
  inventory_ = tick.inventory;
  disks_below_.clear();
  own_threads_.clear();
  senders_again_.clear();
  for (const model::Layer& layer : tick.inventory->layers) {
    if (sends_by_itself(layer.kind)) {
      own_threads_.insert(layer.name);
    }
    if (std::find(model::kSendAgain.begin(), model::kSendAgain.end(), layer.kind) != model::kSendAgain.end()) {
      senders_again_.insert(layer.name);
    }
  }
  for (const model::Membership& membership : tick.inventory->memberships) {
    disks_below_[membership.array].insert(membership.device);
  }
  for (const model::Volume& volume : tick.inventory->volumes) {
    if (const auto array = disks_below_.find(volume.device); array == disks_below_.end()) {
      disks_below_[volume.name].insert(volume.device);
    } else if (volume.name != volume.device) {
      disks_below_[volume.name] = std::set(array->second);  // a partition of an array
    }
  }
}

HoldUp HoldUps::since(model::SteadyTime begin, const model::FloorTime& floor) const {
  const auto has_own_thread = [&](const std::string& volume) { return own_threads_.contains(volume); };
  const bool may_send_again = std::any_of(floor.volumes.begin(), floor.volumes.end(),
                                          [&](const std::string& volume) { return senders_again_.contains(volume); });
  if (!limits_known_ || (floor.operation == model::Operation::write &&
                         std::any_of(floor.volumes.begin(), floor.volumes.end(), has_own_thread))) {
    return HoldUp::other;
  }
  const bool reads = floor.operation == model::Operation::read;
  const auto held_up = [&](const std::string& device) {
    const auto found = last_.find(device);
    const auto last = found == last_.end() ? std::nullopt : reads ? found->second.of_reads : found->second.of_writes;
    return last && *last >= begin;
  };
  const auto had_spike = [&](const std::string& disk) {
    const auto spikes = spikes_.find(disk);
    return reads && spikes != spikes_.end() &&
           std::any_of(spikes->second.begin(), spikes->second.end(), [&](const Spike& one) {
             return one.at >= begin && (may_send_again || floor.own_seconds <= one.longest_wait_seconds);
           });
  };
  std::set<std::string> disks;
  for (const std::string& member : floor.members) {
    if (const auto below = disks_below_.find(member); below != disks_below_.end()) {
      disks.insert(below->second.begin(), below->second.end());
    } else {
      disks.insert(member);
    }
  }
  if (std::any_of(floor.volumes.begin(), floor.volumes.end(), held_up) ||
      std::any_of(floor.members.begin(), floor.members.end(), held_up) ||
      std::any_of(disks.begin(), disks.end(),
                  [&](const std::string& disk) { return !measured_.contains(disk) || held_up(disk); })) {
    return HoldUp::other;
  }
  if (std::none_of(disks.begin(), disks.end(), had_spike)) {
    return HoldUp::none;
  }
  return may_send_again ? HoldUp::other : HoldUp::spike;
}

bool HoldUps::anywhere_since(model::SteadyTime begin) const {
  return std::any_of(last_.begin(), last_.end(),
                     [&](const auto& one) { return one.second.of_reads && *one.second.of_reads >= begin; });
}

void SlowFloors::FloorState::forget_proofs() {
  slow_for = {};
  proofs = 0;
  in_gap = false;
}

void SlowFloors::forget_proofs(const model::FloorTime& floor) {
  if (const auto found = known_.find(std::pair(floor.members, floor.operation)); found != known_.end()) {
    found->second.forget_proofs();
  }
}

void SlowFloors::learn(FloorState& known, const model::FloorTime& floor, std::chrono::seconds interval) const {
  // What may be the beginning of a slow time teaches little.
  const double own =
      known.learned.count() == 0
          ? floor.own_seconds
          : std::min(floor.own_seconds, std::max(model::kMinOwnSeconds, kTimesUsual * known.usual_own_seconds));
  known.learned = std::min<std::chrono::seconds>(known.learned + interval, kLearningTime);
  const double weight = std::min(1.0, std::chrono::duration<double>(interval) / known.learned);
  known.usual_own_seconds += (own - known.usual_own_seconds) * weight;
  known.usual_bytes += (floor.mean_bytes - known.usual_bytes) * weight;
}

std::vector<model::SlowFloor> SlowFloors::observe(const std::vector<model::FloorTime>& floors,
                                                  std::chrono::seconds interval, bool may_say_nothing) {
  std::vector<model::SlowFloor> slow;
  auto before = std::exchange(known_, {});
  for (const model::FloorTime& floor : floors) {
    auto kept = before.extract(std::pair(floor.members, floor.operation));
    FloorState known = kept.empty() ? FloorState() : kept.mapped();
    if (known.slow_for >= kUsualAfter) {
      known.usual_own_seconds = floor.own_seconds;
      known.usual_bytes = floor.mean_bytes;
    }
    // Larger bios take longer, in proportion at most.
    const double larger = known.usual_bytes > 0 ? std::max(1.0, floor.mean_bytes / known.usual_bytes) : 1;
    const double usual = known.usual_own_seconds * larger;
    if (known.learned >= kMinLearned && floor.own_seconds >= model::kMinOwnSeconds &&
        floor.own_seconds >= model::kMinOwnShare * floor.mean_seconds && floor.own_seconds >= kTimesUsual * usual) {
      ++known.proofs;
      known.slow_for += interval;
      known.in_gap = false;
      if (known.proofs >= kProofs) {
        slow.push_back({floor, usual, known.slow_for});
      }
    } else {
      learn(known, floor, interval);
      known.forget_proofs();
    }
    known_.emplace(std::pair(floor.members, floor.operation), known);
  }
  // Those with too few I/Os, or that may have been held up, keep what is usual, and for one interval their proofs.
  for (auto& [key, known] : before) {
    if (known.proofs == 0 || known.in_gap || !may_say_nothing || interval > kLongestGap) {
      known.forget_proofs();
    } else {
      // What was published ends with this interval: what follows begins after it.
      known.slow_for = known.proofs < kProofs ? known.slow_for + interval : std::chrono::seconds{};
      known.in_gap = true;
    }
    known_.emplace(key, known);
  }
  return slow;
}

void SlowFloors::forget(const std::set<std::string>& members) {
  std::erase_if(known_, [&](const auto& one) {
    const auto& [own, operation] = one.first;
    return std::any_of(own.begin(), own.end(), [&](const std::string& member) { return members.contains(member); });
  });
  for (auto& [key, known] : known_) {
    known.forget_proofs();
  }
}

model::Findings Volumes::observe(const model::Tick& tick) {
  if (const auto differing = changed(layers_, tick.inventory->layers); tick.bios.empty() || !differing.empty()) {
    slow_.forget(members_from(differing, tick.inventory->layers));
    layers_ = tick.inventory->layers;
    marks_.clear();
    figures_ = nullptr;
  }
  if (tick.bios.empty()) {
    return {};
  }
  hold_ups_.observe(tick);
  if (marks_.empty() || tick.at - marks_.back().at >= kBetweenMarks) {
    std::vector<model::SlowFloor> slow;
    if (!marks_.empty()) {
      const auto interval = tick.at - marks_.back().at;
      const double interval_seconds = std::chrono::duration<double>(interval).count();
      auto floors = figures_between(marks_.back().bios, tick.bios, interval_seconds, layers_, kMinEndedForProof).floors;
      std::erase_if(floors, [&](const FloorTime& one) {
        const HoldUp held_up = hold_ups_.since(marks_.back().at, one);
        if (held_up == HoldUp::other) {
          slow_.forget_proofs(one);
        }
        return held_up != HoldUp::none;
      });
      slow = slow_.observe(floors, std::chrono::round<std::chrono::seconds>(interval),
                           !hold_ups_.anywhere_since(marks_.back().at));
    }
    marks_.push_back({tick.at, tick.bios});
    while (marks_.size() > 2 && tick.at - marks_[1].at >= kWindow) {
      marks_.pop_front();
    }
    const double seconds = std::chrono::duration<double>(tick.at - marks_.front().at).count();
    if (marks_.size() > 1) {
      model::VolumeFigures figures = figures_between(marks_.front().bios, tick.bios, seconds, layers_);
      std::erase_if(figures.floors,
                    [&](const FloorTime& one) { return hold_ups_.since(marks_.front().at, one) != HoldUp::none; });
      figures.slow = std::move(slow);
      figures_ = std::make_shared<const model::VolumeFigures>(std::move(figures));
    }
  }
  return {[figures = figures_](model::Snapshot& snapshot) { snapshot.volume_figures = figures; }};
}

}  // namespace ssdpulse::volumes
