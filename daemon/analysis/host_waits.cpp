// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/host_waits.h"

#include <algorithm>
#include <utility>

namespace ssdpulse::analysis {
namespace {

using model::HostWait;
using model::HostWaitCause;
using model::SteadyTime;
using Seconds = std::chrono::duration<double>;

constexpr std::chrono::seconds kWindow{3};  // over which rates and shares are taken

// A wait is claimed once its proof has held for two seconds in a row, and has ended after some seconds without one.
constexpr std::chrono::milliseconds kConfirmAfter{900};
constexpr std::chrono::seconds kEndAfter{4};

constexpr double kMinWaitingRatio = 0.3;  // share of the time in which tasks wait

// What is counted against a cgroup's limit, in shares of the limit: at it; or so far above that the count is of
// something else.
constexpr double kMinLimitRatio = 0.95;
constexpr double kMaxLimitRatio = 1.5;

// Waiting that nothing explains: share of the time, beyond what is usual here. What is usual is the mean of a window of
// learning, and not used before some calls; a wait that lasts longer than an hour is usual from then on.
constexpr double kMinUnexplainedRatio = 0.5;
constexpr std::chrono::minutes kLearningWindow{10};
constexpr std::uint64_t kMinLearnedCalls = 60;
constexpr std::chrono::hours kUsualAfter{1};

// Available bytes with which larger writes fail; of a small file system a hundredth of its size.
constexpr std::uint64_t kNoRoomBytes = 1 << 20;

double seconds_between(SteadyTime begin, SteadyTime end) { return Seconds(end - begin).count(); }

std::string key_of(const model::IoLimit& limit) {
  return limit.cgroup.raw() + '\n' + limit.device + '\n' +
         std::string(model::kIoLimitKindNames[static_cast<std::size_t>(limit.kind)]);
}

bool is_below(const std::string& cgroup, const std::string& top) {
  return cgroup == top || cgroup.rfind(top + "/", 0) == 0;
}

}  // namespace

void HostWaits::update_pressure(const Second& second) {
  const double interval = last_call_ ? seconds_between(*last_call_, second.at) : 0;
  last_call_ = second.at;
  in_flight_seconds_ += interval * std::clamp(second.in_flight_ratio, 0.0, 1.0);
  Reading reading{second.at, second.signals->pressure, {}, in_flight_seconds_, {}, {}};
  if (second.signals->blocked_tasks) {
    reading.blocked = *second.signals->blocked_tasks > 0 ? 1 : 0;
  }
  for (const model::IoLimit& limit : second.signals->limits) {
    if (limit.done) {
      reading.limit_counts[key_of(limit)] = *limit.done;
    }
    if (limit.pressure) {
      reading.limit_wait_seconds[key_of(limit)] = limit.pressure->some_seconds;
    }
  }
  readings_.push_back(std::move(reading));
  while (readings_.size() > 2 && second.at - readings_[1].at >= kWindow) {
    readings_.pop_front();
  }
  waiting_ratio_.reset();
  unexplained_ratio_.reset();
  const Reading& first = readings_.front();
  const Reading& last = readings_.back();
  const double window = seconds_between(first.at, last.at);
  if (window <= 0) {
    return;
  }
  has_pressure_ = first.pressure && last.pressure;
  if (has_pressure_) {
    waiting_ratio_ = std::clamp((last.pressure->some_seconds - first.pressure->some_seconds) / window, 0.0, 1.0);
  } else if (std::all_of(readings_.begin(), readings_.end(),
                         [](const Reading& one) { return one.blocked.has_value(); })) {
    double sum = 0;
    for (const Reading& one : readings_) {
      sum += *one.blocked;
    }
    waiting_ratio_ = sum / static_cast<double>(readings_.size());
  }
  if (waiting_ratio_) {
    unexplained_ratio_ = std::max(0.0, *waiting_ratio_ - (last.in_flight_seconds - first.in_flight_seconds) / window);
  }
}

/// Usually the file system on it is frozen, too, and whoever writes there waits without being counted. So a volume that
/// was in use needs no more proof; one that has always been suspended does.
void HostWaits::find_suspended(const Second& second, Found& found) {
  const bool waits = unexplained_ratio_ && *unexplained_ratio_ >= kMinWaitingRatio;
  const std::set<std::string> before = std::exchange(in_use_, {});
  for (const model::VolumeSignals& volume : second.signals->volumes) {
    const bool was_in_use = before.contains(volume.volume);
    if (!volume.suspended || was_in_use) {
      in_use_.insert(volume.volume);
    }
    if (volume.suspended && (waits || was_in_use)) {
      HostWait wait{HostWaitCause::suspended, volume.volume, "", "", second.wall};
      wait.file = "dm/suspended";
      found.emplace(Key{wait.cause, volume.volume}, std::move(wait));
    }
  }
}

/// Its volume is named, and not it, where that is suspended: that freezes what is on it, too.
void HostWaits::find_frozen(const Second& second, Found& found) const {
  const auto& volumes = second.signals->volumes;
  for (const model::FrozenFilesystem& frozen : second.signals->frozen) {
    const bool suspended = std::any_of(volumes.begin(), volumes.end(), [&](const model::VolumeSignals& one) {
      return one.suspended &&
             std::find(frozen.volumes.begin(), frozen.volumes.end(), one.volume) != frozen.volumes.end();
    });
    if (!suspended) {
      HostWait wait{HostWaitCause::frozen, frozen.mountpoint, "", "", second.wall};
      wait.file = "freeze_super";
      wait.command = frozen.command;
      found.emplace(Key{wait.cause, frozen.mountpoint}, std::move(wait));
    }
  }
}

/// Only what has become full while this was watched: what has been full for a year is no news.
void HostWaits::find_full(const Second& second, Found& found) {
  // Another file system at the same place has another size.
  const auto before = std::exchange(had_room_, {});
  for (const model::FilesystemRoom& room : second.signals->rooms) {
    const bool bytes = room.available_bytes <= std::min(kNoRoomBytes, room.size_bytes / 100);
    const bool inodes = room.inodes > 0 && room.available_inodes == 0;
    const auto key = std::pair(room.mountpoint, room.size_bytes);
    const bool had = before.contains(key);
    if (had || (!bytes && !inodes)) {
      had_room_.insert(key);
    }
    if (had && (bytes || inodes)) {
      HostWait wait{HostWaitCause::full, room.mountpoint, "", "", second.wall};
      wait.evidence["available_bytes"] = static_cast<double>(room.available_bytes);
      wait.evidence["available_inodes"] = static_cast<double>(room.available_inodes);
      wait.evidence["inodes_full"] = bytes ? 0 : 1;
      wait.file = "statfs(2)";
      found.emplace(Key{wait.cause, room.mountpoint}, std::move(wait));
    }
  }
}

void HostWaits::find_limits(const Second& second, Found& found) const {
  constexpr double kMinRateWindowSeconds = 1.8;  // the kernel lets more through at first
  const Reading& last = readings_.back();
  for (const model::IoLimit& limit : second.signals->limits) {
    const std::string key = key_of(limit);
    const auto oldest = std::find_if(readings_.begin(), readings_.end(),
                                     [&](const Reading& one) { return one.limit_counts.contains(key); });
    if (!limit.done || second.slow_devices.contains(limit.device)) {
      continue;
    }
    const Reading& first = *oldest;
    const std::uint64_t before = first.limit_counts.at(key);
    const double window = seconds_between(first.at, last.at);
    if (window < kMinRateWindowSeconds || *limit.done < before) {
      continue;
    }
    const double rate = static_cast<double>(*limit.done - before) / window;
    const auto limit_per_second = static_cast<double>(limit.per_second);
    if (rate < kMinLimitRatio * limit_per_second || rate > kMaxLimitRatio * limit_per_second) {
      continue;
    }
    // Tasks below it must wait; without the cgroup's own pressure, somebody on the host must.
    const auto waited_before = first.limit_wait_seconds.find(key);
    const auto waited = last.limit_wait_seconds.find(key);
    const bool own = waited_before != first.limit_wait_seconds.end() && waited != last.limit_wait_seconds.end();
    const double waits =
        own ? std::clamp((waited->second - waited_before->second) / window, 0.0, 1.0) : unexplained_ratio_.value_or(0);
    if (waits < kMinWaitingRatio) {
      continue;
    }
    // Whoever is alone below it is held up; of several, it is not known which.
    std::set<std::string> below;
    for (const model::CgroupPressure& one : second.signals->cgroups) {
      if (is_below(one.cgroup.raw(), limit.cgroup.raw())) {
        below.insert(one.tenant);
      }
    }
    const std::string& tenant = below.size() == 1 ? *below.begin() : limit.tenant;
    HostWait wait{HostWaitCause::cgroup_limit, limit.tenant, limit.device, tenant, second.wall};
    if (own || has_pressure_) {
      wait.evidence[own ? "pressure_ratio" : "host_unexplained_ratio"] = waits;
    }
    wait.evidence["rate_per_second"] = rate;
    wait.evidence["limit_per_second"] = limit_per_second;
    wait.evidence["limit_kind"] = static_cast<double>(limit.kind);
    wait.file = limit.file;
    // One for each tenant and device, whichever of its limits.
    found.emplace(Key{wait.cause, limit.tenant + '\n' + limit.device}, std::move(wait));
  }
}

void HostWaits::find_dirty(const Second& second, Found& found) const {
  const auto& dirty = second.signals->dirty;
  if (!dirty || dirty->threshold_bytes == 0 || waiting_ratio_.value_or(0) < kMinWaitingRatio) {
    return;
  }
  // dirty_freerun_ceiling() in mm/page-writeback.c: below it nobody is held up.
  const double free_run = static_cast<double>(dirty->threshold_bytes + dirty->background_threshold_bytes) / 2;
  constexpr double kFreeRunTolerance = 0.97;  // whoever is held up stays just below
  if (static_cast<double>(dirty->bytes) < kFreeRunTolerance * free_run) {
    return;
  }
  HostWait wait{HostWaitCause::dirty_throttling, "", "", "", second.wall};
  if (has_pressure_) {
    wait.evidence["pressure_ratio"] = *waiting_ratio_;
  }
  wait.evidence["dirty_bytes"] = static_cast<double>(dirty->bytes);
  wait.evidence["dirty_threshold_bytes"] = static_cast<double>(dirty->threshold_bytes);
  wait.file = "/proc/vmstat";
  found.emplace(Key{wait.cause, ""}, std::move(wait));
}

/// Network file systems, swap and disks that are not measured make tasks wait, too: on a host where they always do,
/// that is usual.
void HostWaits::find_unexplained(const Second& second, Found& found) {
  if (!unexplained_ratio_ || !has_pressure_) {
    return;  // that somebody waits at a moment is no share of the time
  }
  const bool claimed =
      learned_calls_ >= kMinLearnedCalls && *unexplained_ratio_ - usual_unexplained_ratio_ >= kMinUnexplainedRatio;
  // What is usual is not learned from what is not.
  const auto open = open_.find(Key{HostWaitCause::pressure, ""});
  const bool unusual = open != open_.end() && open->second.claimed && second.at - open->second.first < kUsualAfter;
  if (!unusual) {
    learned_calls_ =
        std::min<std::uint64_t>(learned_calls_ + 1, static_cast<std::uint64_t>(Seconds(kLearningWindow).count()));
    usual_unexplained_ratio_ += (*unexplained_ratio_ - usual_unexplained_ratio_) / static_cast<double>(learned_calls_);
  }
  if (claimed && found.empty() && second.slow_devices.empty()) {
    HostWait wait{HostWaitCause::pressure, "", "", "", second.wall};
    wait.evidence["pressure_ratio"] = *waiting_ratio_;
    wait.evidence["unexplained_ratio"] = *unexplained_ratio_;
    wait.evidence["baseline_unexplained_ratio"] = usual_unexplained_ratio_;
    wait.file = "/proc/pressure/io";
    found.emplace(Key{wait.cause, ""}, std::move(wait));
  }
}

std::vector<HostWait> HostWaits::observe(const Second& second) {
  update_pressure(second);
  Found found;
  find_suspended(second, found);
  find_frozen(second, found);
  find_full(second, found);
  find_limits(second, found);
  find_dirty(second, found);
  find_unexplained(second, found);
  for (auto& [key, wait] : found) {
    const auto [entry, is_new] = open_.try_emplace(key, Open{second.at, second.at, false, wait});
    Open& open = entry->second;
    wait.begin = open.wait.begin;
    open.wait = std::move(wait);
    open.last = second.at;
    const bool exact = key.first == HostWaitCause::full;  // no chance that it is only a moment of a healthy load
    open.claimed = open.claimed || exact || second.at - open.first >= kConfirmAfter;
  }
  std::vector<HostWait> waits;
  for (auto entry = open_.begin(); entry != open_.end();) {
    Open& open = entry->second;
    const bool over = second.at - open.last >= (open.claimed ? Seconds(kEndAfter) : Seconds(kConfirmAfter));
    open.wait.duration = open.last - open.first;
    open.wait.over = over;
    if (open.claimed) {
      waits.push_back(open.wait);
    }
    entry = over ? open_.erase(entry) : std::next(entry);
  }
  return waits;
}

}  // namespace ssdpulse::analysis
