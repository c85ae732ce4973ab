// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/host_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "daemon/base/number_text.h"
#include "daemon/model/incident.h"
#include "daemon/spikes/io_window.h"

namespace ssdpulse::spikes {
namespace {

using log::field;
using log::quoted;
using model::HostWait;
using model::HostWaitCause;
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

std::string key_of(const model::IoLimit& limit) {
  return limit.cgroup.raw() + '\n' + limit.device + '\n' +
         std::string(model::kIoLimitKindNames[static_cast<std::size_t>(limit.kind)]);
}

bool is_below(const std::string& cgroup, const std::string& top) {
  return cgroup == top || cgroup.rfind(top + "/", 0) == 0;
}

std::string evidence_of(const HostWait& wait) {
  std::string evidence;
  for (const auto& [name, value] : wait.evidence) {
    evidence += fmt::format("{}{}={:.6g}", evidence.empty() ? "" : " ", name, value);
  }
  if (!wait.command.empty()) {
    std::string command = util::for_log(wait.command);
    std::replace(command.begin(), command.end(), ' ', '_');
    evidence += fmt::format("{}{}={}", evidence.empty() ? "" : " ", model::kWaitCommand, command);
  }
  return evidence;
}

model::PastWait row_of(const HostWait& wait) {
  return {wait.begin,        std::string(name(wait.cause, model::kHostWaitCauseNames)),
          wait.subject,      wait.device,
          wait.tenant,       Seconds(wait.duration).count(),
          evidence_of(wait), wait.file};
}

log::Line line_of(const HostWait& wait) {
  return log::line(log::Level::warning, "I/O held up{}", wait.over ? " until now" : "",
                   field("cause", name(wait.cause, model::kHostWaitCauseNames)),
                   quoted("subject", util::for_log(wait.subject)), field("device", wait.device),
                   field("tenant", wait.tenant), field("begin", util::utc_text(wait.begin)),
                   wait.over ? field("seconds", "{:.3f}", Seconds(wait.duration).count()) : log::Field{},
                   quoted("evidence", evidence_of(wait)), field("source", wait.file));
}

}  // namespace

HostWait& HostWaits::add(Found& found, const Second& second, HostWaitCause cause, const util::OutsideText& subject,
                         const char* source, std::map<std::string, double> evidence) {
  HostWait wait{cause, subject, "", "", second.wall};
  wait.file = source;
  wait.evidence = std::move(evidence);
  return found.emplace(Key{cause, subject}, std::move(wait)).first->second;
}

void HostWaits::update_pressure(const Second& second) {
  const double interval = last_call_ ? seconds_between(*last_call_, second.at) : 0;
  last_call_ = second.at;
  in_flight_seconds_ += interval * std::clamp(second.in_flight_ratio, 0.0, 1.0);
  Reading reading{second.at, second.signals->pressure, {}, second.signals->cpu_wait_seconds, in_flight_seconds_, {},
                  {}};
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

/// Usually the file system on a suspended volume is frozen, too, and its writers wait without being counted. So a
/// volume that was in use needs no more proof; one that has always been suspended does.
void HostWaits::find_suspended(const Second& second, Found& found) {
  const bool waits = unexplained_ratio_ && *unexplained_ratio_ >= kMinWaitingRatio;
  const std::set<std::string> before = std::exchange(in_use_, {});
  for (const model::VolumeSignals& volume : second.signals->volumes) {
    const bool was_in_use = before.contains(volume.volume);
    if (!volume.suspended || was_in_use) {
      in_use_.insert(volume.volume);
    }
    if (volume.suspended && (waits || was_in_use)) {
      add(found, second, HostWaitCause::suspended, volume.volume, "dm/suspended");
    }
  }
}

/// Where its volume is suspended, that is reported instead: suspending freezes the file systems on it, too.
void HostWaits::find_frozen(const Second& second, Found& found) const {
  const auto& volumes = second.signals->volumes;
  for (const model::FrozenFilesystem& frozen : second.signals->frozen) {
    const bool suspended = std::any_of(volumes.begin(), volumes.end(), [&](const model::VolumeSignals& one) {
      return one.suspended &&
             std::find(frozen.volumes.begin(), frozen.volumes.end(), one.volume) != frozen.volumes.end();
    });
    if (!suspended) {
      add(found, second, HostWaitCause::frozen, frozen.mountpoint, "freeze_super").command = frozen.command;
    }
  }
}

/// Only file systems that became full while they were watched: one that has been full for a year is no news.
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
      add(found, second, HostWaitCause::full, room.mountpoint, "statfs(2)",
          {{"available_bytes", static_cast<double>(room.available_bytes)},
           {"available_inodes", static_cast<double>(room.available_inodes)},
           {"inodes_full", bytes ? 0 : 1}});
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

/// Of several operations of a layer, the slower.
void HostWaits::find_slow_layers(const Second& second, Found& found) const {
  const Reading& first = readings_.front();
  const Reading& last = readings_.back();
  for (const SlowLayer& slow : second.slow_layers) {
    const model::FloorTime& time = slow.floor.time;
    const util::OutsideText& subject = slow.layer.title.empty() ? util::OutsideText(slow.layer.name) : slow.layer.title;
    HostWait wait{HostWaitCause::layer, subject, slow.layer.name, "", second.wall - slow.floor.slow_for};
    wait.duration = slow.floor.slow_for;
    wait.evidence = {{"mean_seconds", time.mean_seconds},
                     {"own_seconds", time.own_seconds},
                     {"baseline_own_seconds", slow.floor.usual_own_seconds},
                     {"own_is_exact", time.exact ? 1 : 0},
                     {"operation", static_cast<double>(index(time.operation))},
                     {"layer_kind", static_cast<double>(slow.layer.kind)}};
    if (first.cpu_wait_seconds && last.cpu_wait_seconds && last.at > first.at) {
      wait.evidence["cpu_pressure_ratio"] =
          std::clamp((*last.cpu_wait_seconds - *first.cpu_wait_seconds) / seconds_between(first.at, last.at), 0.0, 1.0);
    }
    wait.file = "block_bio_queue";
    const auto [entry, is_new] = found.emplace(Key{wait.cause, subject}, wait);
    if (!is_new && entry->second.evidence.at("own_seconds") < time.own_seconds) {
      entry->second = std::move(wait);
    }
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
  HostWait& wait = add(found, second, HostWaitCause::dirty_throttling, "", "/proc/vmstat",
                       {{"dirty_bytes", static_cast<double>(dirty->bytes)},
                        {"dirty_threshold_bytes", static_cast<double>(dirty->threshold_bytes)}});
  if (has_pressure_) {
    wait.evidence["pressure_ratio"] = *waiting_ratio_;
  }
}

/// Network file systems, swap and disks that are not measured make tasks wait, too: on a host where they always do,
/// that is usual.
void HostWaits::find_unexplained(const Second& second, Found& found) {
  if (!unexplained_ratio_ || !has_pressure_) {
    return;  // without it, the ratio is only of samples
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
    add(found, second, HostWaitCause::pressure, "", "/proc/pressure/io",
        {{"pressure_ratio", *waiting_ratio_},
         {"unexplained_ratio", *unexplained_ratio_},
         {"baseline_unexplained_ratio", usual_unexplained_ratio_}});
  }
}

std::vector<HostWait> HostWaits::observe(const Second& second) {
  update_pressure(second);
  Found found;
  find_suspended(second, found);
  find_frozen(second, found);
  find_full(second, found);
  find_limits(second, found);
  find_slow_layers(second, found);
  find_dirty(second, found);
  find_unexplained(second, found);
  for (auto& [key, wait] : found) {
    // What was proven before it was found counts, too.
    const auto [entry, is_new] = open_.try_emplace(key, Open{second.at - wait.duration, second.at, false, wait});
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

std::optional<double> RoomTrend::rate_of(const std::deque<Reading>& readings, const Reading& now) {
  if (readings.empty() || now.at - readings.front().at < kMinSpan) {
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

/// At least the share of the time in which any I/O was in flight, by the kernel's account or by ours: times of I/Os are
/// added up, as if none overlapped.
double HostWaitStage::in_flight_ratio(const model::Tick& tick) {
  const double interval = before_ ? Seconds(tick.at - *before_).count() : 0;
  before_ = tick.at;
  std::map<std::string, Device> before = std::exchange(devices_, {});
  double ours = 0;
  for (const model::DeviceTick& device : tick.devices) {
    Device& now = devices_[device.block.device->name];
    const Device& was = before[device.block.device->name];
    if (!device.block.io) {
      ours += 1;  // not measured: it may be busy
      continue;
    }
    for (std::size_t i = 0; i < model::kOperations; ++i) {
      const model::OperationIo& io = device.block.io->operations[i];
      const auto device_ns = std::accumulate(io.device_latency.begin(), io.device_latency.end(), std::uint64_t{0},
                                             [](std::uint64_t sum, const auto& one) { return sum + one.sum_ns; });
      now[i] = {std::max(device_ns, io.total_latency.sum_ns), io.completions};
      const bool stands_still = io.in_flight > 0 && now[i].completions == was[i].completions;
      const std::uint64_t busy_ns = now[i].busy_ns - std::min(now[i].busy_ns, was[i].busy_ns);
      ours += stands_still ? 1 : interval > 0 ? static_cast<double>(busy_ns) / 1e9 / interval : 0;
    }
  }
  const double disks = tick.host->disks_busy_seconds;
  const double theirs = disks - std::exchange(disks_busy_seconds_, disks);
  return std::max(ours, interval > 0 ? theirs / interval : 0);
}

/// Pressure of several cgroups overlaps: in each second, that of the one that waited longest counts.
void HostWaitStage::add_tenants(const model::Tick& tick) {
  std::map<util::OutsideText, double> before = std::exchange(cgroup_seconds_, {});
  std::map<std::string, double> totals = std::exchange(tenant_seconds_, {});
  std::map<std::string, double> more;
  for (const model::CgroupPressure& one : tick.host->cgroups) {
    cgroup_seconds_[one.cgroup] = one.pressure.some_seconds;
    const auto was = before.find(one.cgroup);
    const double grown = was == before.end() ? 0 : std::max(0.0, one.pressure.some_seconds - was->second);
    more[one.tenant] = std::max(more[one.tenant], grown);
  }
  for (const auto& [tenant, seconds] : more) {
    tenant_seconds_[tenant] = totals[tenant] + seconds;
  }
}

/// Where several volumes share the time, none of them can be named.
std::vector<HostWaits::SlowLayer> HostWaitStage::slow_layers(const model::Tick& tick) {
  std::vector<HostWaits::SlowLayer> layers;
  if (!tick.before || !tick.before->volume_figures) {
    return layers;
  }
  for (const model::SlowFloor& floor : tick.before->volume_figures->slow) {
    if (const model::Layer* layer = model::layer_of(tick.inventory->layers, floor.time.heaviest); layer != nullptr) {
      layers.push_back({floor, *layer});
    }
  }
  return layers;
}

model::Findings HostWaitStage::observe(const model::Tick& tick) {
  model::Findings findings;
  if (!tick.host) {
    return findings;
  }
  HostWaits::Second second{tick.at, tick.wall, tick.host.get(), in_flight_ratio(tick)};
  if (tick.before) {
    for (const model::LatencySpike& spike : tick.before->spikes_going_on) {
      if (model::is_harmful(spike)) {
        second.slow_devices.insert(spike.device);
      }
    }
  }
  second.slow_layers = slow_layers(tick);
  std::vector<model::HostWait> waits = waits_.observe(second);
  std::map<std::string, model::WallTime> before = std::exchange(logged_, {});
  for (const model::HostWait& wait : waits) {
    const std::string key = fmt::format("{} {} {}", static_cast<int>(wait.cause), wait.subject.raw(), wait.device);
    if (wait.over) {
      seconds_[index(wait.cause)] += Seconds(wait.duration).count();
      findings.effects.lines.push_back(line_of(wait));
      findings.effects.rows.waits.push_back(row_of(wait));
      continue;
    }
    if (!before.contains(key)) {
      ++count_[index(wait.cause)];
      findings.effects.lines.push_back(line_of(wait));
    }
    logged_.emplace(key, wait.begin);
    if (tick.last) {
      findings.effects.rows.waits.push_back(row_of(wait));  // its end will not be seen
    }
  }
  add_tenants(tick);
  model::HostFigures figures{tick.host, waits,           count_,
                             seconds_,  tenant_seconds_, room_trend_.observe(tick.host->rooms, tick.at)};
  for (const model::HostWait& wait : waits) {
    if (!wait.over) {
      figures.seconds[index(wait.cause)] += Seconds(wait.duration).count();
    }
  }
  findings.values = [figures = std::move(figures)](model::Snapshot& snapshot) { snapshot.host = figures; };
  return findings;
}

}  // namespace ssdpulse::spikes
