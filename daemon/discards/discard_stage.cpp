// SPDX-License-Identifier: Apache-2.0
#include "daemon/discards/discard_stage.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "daemon/base/number_text.h"

namespace ssdpulse::discards {
namespace {

using log::field;
using log::quoted;

constexpr std::uint64_t kLongNs = 60'000'000'000;  // a burst this long is announced before it ends
/// Online discards of small deleted files come with each commit of the journal, and are of little interest.
constexpr std::uint64_t kSmallBytes = 64 << 20;
constexpr std::size_t kMaxClockPairs = 600;

std::uint64_t monotonic_ns(const model::Tick& tick) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(tick.at.time_since_epoch()).count());
}

template <typename Text>
std::string joined(const std::set<Text>& names) {
  std::string text;
  for (const Text& name : names) {
    text += (text.empty() ? "" : ",") + util::for_log(name);
  }
  return text;
}

std::string_view name_of(model::DiscardTrigger trigger) {
  return model::kDiscardTriggerNames[static_cast<std::size_t>(trigger)];
}

}  // namespace

DiscardingVolumes volumes_with_discard(const model::Inventory& inventory) {
  DiscardingVolumes result;
  for (const model::Filesystem& filesystem : inventory.filesystems) {
    if (filesystem.discard) {
      for (const std::string& volume : filesystem.volumes) {
        result[volume] |= callers_discard(filesystem);
      }
    }
  }
  return result;
}

std::set<util::OutsideText> mountpoints(const std::set<std::string>& volumes, const model::Inventory& inventory) {
  std::set<util::OutsideText> result;
  for (const model::Filesystem& filesystem : inventory.filesystems) {
    if (std::any_of(filesystem.volumes.begin(), filesystem.volumes.end(),
                    [&](const std::string& volume) { return volumes.count(volume) != 0; })) {
      result.insert(filesystem.mountpoint);
    }
  }
  return result;
}

std::set<std::string> arrays_among(const std::set<std::string>& volumes, const std::string& device,
                                   const model::Inventory& inventory) {
  std::set<std::string> result;
  for (const model::Volume& volume : inventory.volumes) {
    if (volume.device != device && volumes.count(volume.name) != 0) {
      result.insert(volume.device);
    }
  }
  return result;
}

VolumesByDevice volumes_by_device(const std::map<std::string, model::DiscardSubmitters>& submitted,
                                  const model::Inventory& inventory, const DiscardingVolumes& with_discard) {
  std::map<std::string, DiscardVolume> uses;
  for (const model::Volume& volume : inventory.volumes) {
    const auto discarding = with_discard.find(volume.name);
    for (const std::string& name : {volume.name, volume.device}) {
      uses[name].mounted_with_discard |= discarding != with_discard.end();
      uses[name].callers_discard |= discarding != with_discard.end() && discarding->second;
      uses[name].carries_array |= volume.carries_array;
    }
  }
  std::multimap<std::string_view, std::string> members;
  for (const model::Membership& member : inventory.memberships) {
    members.emplace(member.array, member.device);
  }
  VolumesByDevice result;
  for (const model::Volume& volume : inventory.volumes) {
    const auto found = submitted.find(volume.name);
    if (found == submitted.end()) {
      continue;
    }
    DiscardVolume& use = uses[volume.name];
    use.submitters = &found->second;
    result[volume.device][volume.name] = use;
    use.is_array = true;
    const auto [begin, end] = members.equal_range(volume.device);
    std::for_each(begin, end, [&](const auto& member) { result[member.second][volume.name] = use; });
  }
  return result;
}

/// Converts a time on CLOCK_MONOTONIC to what the wall clock showed then: it may have been set since.
model::WallTime Discards::wall_of(std::uint64_t at_ns) const {
  const auto next = std::lower_bound(clocks_.begin(), clocks_.end(), at_ns,
                                     [](const ClockPair& clocks, std::uint64_t at) { return clocks.at_ns < at; });
  const ClockPair& clocks = next == clocks_.end() ? clocks_.back() : *next;
  return clocks.wall - std::chrono::nanoseconds(static_cast<std::int64_t>(clocks.at_ns - at_ns));
}

model::Findings Discards::observe(const model::Tick& tick) {
  clocks_.push_back({monotonic_ns(tick), tick.wall});
  if (clocks_.size() > kMaxClockPairs) {
    clocks_.pop_front();
  }
  const model::Inventory& inventory = *tick.inventory;
  // What was unmounted since the last tick discarded until then.
  DiscardingVolumes online = std::exchange(with_discard_, volumes_with_discard(inventory));
  for (const auto& [volume, callers] : with_discard_) {
    online[volume] |= callers;
  }
  VolumesByDevice volumes = volumes_by_device(tick.discards, inventory, online);
  model::Findings findings;
  Lines& lines = findings.effects.lines;
  std::vector<model::DiscardBurstsByTrigger> bursts(tick.devices.size());
  devices_.observe(tick, [&](std::size_t number, const model::DeviceTick& device, Device& known) {
    if (device.block.io) {
      observe_device(device, known, std::move(volumes[device.block.device->name]), tick, findings.effects);
      bursts[number] = known.finder.figures();
    }
  });
  for (const auto& twice : filesystems_.observe(inventory.filesystems, tick.discards, tick.wall)) {
    lines.push_back(log::line(log::Level::warning,
                              "{} {} is mounted with discard and also trimmed by fstrim: use one of the two",
                              field("volume", twice.volume), quoted("filesystem", util::for_log(twice.mountpoint))));
  }
  findings.values = [bursts = std::move(bursts), filesystems = filesystems_.figures(),
                     arrays = arrays(tick)](model::Snapshot& snapshot) {
    for (std::size_t i = 0; i < bursts.size(); ++i) {
      snapshot.devices[i].discards = bursts[i];
    }
    snapshot.filesystem_discards = filesystems;
    snapshot.array_discards = arrays;
  };
  return findings;
}

void Discards::observe_device(const model::DeviceTick& device, Device& known,
                              std::map<std::string, DiscardVolume> volumes, const model::Tick& tick,
                              model::Effects& effects) {
  Lines& lines = effects.lines;
  const std::string& name = device.block.device->name;
  const model::OperationIo& io = device.block.io->operation(model::Operation::discard);
  DiscardTick seen;
  seen.now_ns = monotonic_ns(tick);
  seen.gap_ns = static_cast<std::uint64_t>(tick.settings.discard_gap.count());
  seen.requests = {io.issues, io.completions, io.bytes, io.in_flight,
                   // A device may have been read again, after the tick began.
                   std::min(device.block.last_discard_end_ns, seen.now_ns)};
  seen.volumes = std::move(volumes);
  for (const DiscardBurst& burst : known.finder.observe(seen)) {
    report(name, burst, tick, lines);
    effects.rows.bursts.push_back({wall_of(burst.begin_ns), name, std::string(name_of(burst.trigger)),
                                   static_cast<double>(burst.end_ns - burst.begin_ns) / 1e9, burst.bytes});
  }
  for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
    const auto& burst = known.finder.running(i);
    if (!burst || seen.now_ns - burst->begin_ns < kLongNs || burst->bytes < kSmallBytes ||
        known.announced[i] == burst->begin_ns) {
      continue;
    }
    known.announced[i] = burst->begin_ns;
    lines.push_back(log::line(log::Level::info, "discard burst continues", field("device", name),
                              field("trigger", name_of(burst->trigger)),
                              field("begin", util::utc_text(wall_of(burst->begin_ns))), field("bytes", burst->bytes),
                              quoted("comm", util::for_log(burst->submitter)),
                              quoted("filesystem", joined(mountpoints(burst->volumes, *tick.inventory))),
                              quoted("array", joined(arrays_among(burst->volumes, name, *tick.inventory)))));
  }
}

void Discards::report(const std::string& device, const DiscardBurst& burst, const model::Tick& tick, Lines& lines) {
  const std::string_view trigger = name_of(burst.trigger);
  log::Limiter& limiter = burst.bytes < kSmallBytes ? small_limiter_ : limiter_;
  const auto suppressed = limiter.admit(device + " " + std::string(trigger), tick.at);
  if (!suppressed) {
    return;
  }
  lines.push_back(log::line(
      log::Level::info, "discard burst", field("device", device), field("trigger", trigger),
      field("begin", util::utc_text(wall_of(burst.begin_ns))), field("end", util::utc_text(wall_of(burst.end_ns))),
      field("seconds", "{:.3f}", static_cast<double>(burst.end_ns - burst.begin_ns) / 1e9), field("bytes", burst.bytes),
      field("requests", burst.requests), burst.ranges ? field("ranges", *burst.ranges) : log::Field{},
      quoted("comm", util::for_log(burst.submitter)),
      quoted("filesystem", joined(mountpoints(burst.volumes, *tick.inventory))),
      quoted("array", joined(arrays_among(burst.volumes, device, *tick.inventory))), field("suppressed", *suppressed)));
}

/// A member's burst is also the array's if it was submitted there.
std::vector<model::ArrayDiscards> Discards::arrays(const model::Tick& tick) const {
  std::map<std::string, std::array<std::set<std::string>, model::kDiscardTriggers>> submitted_to;  // by member
  std::map<std::string, std::array<bool, model::kDiscardTriggers>> active;                         // by array
  for (const model::Membership& member : tick.inventory->memberships) {
    // Where nothing was watched, nothing is known.
    if (tick.discards.count(member.array) == 0) {
      continue;
    }
    const auto [arrays_of, is_new] = submitted_to.try_emplace(member.device);
    const Device* device = is_new ? devices_.find(member.device) : nullptr;
    for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
      if (device != nullptr && device->finder.running(i)) {
        arrays_of->second[i] = arrays_among(device->finder.running(i)->volumes, member.device, *tick.inventory);
      }
      active[member.array][i] |= arrays_of->second[i].count(member.array) != 0;
    }
  }
  std::vector<model::ArrayDiscards> arrays;
  for (const auto& [array, by_trigger] : active) {
    arrays.push_back({array, by_trigger});
  }
  return arrays;
}

}  // namespace ssdpulse::discards
