// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/discard_watch.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "daemon/runtime/discard_volumes.h"
#include "daemon/util/utc_text.h"

namespace ssdpulse::runtime {
namespace {

constexpr std::uint64_t kLongNs = 60'000'000'000;  // a burst this long is announced before it ends
/// What deleting small files discards online comes with each commit of the journal, and is of no interest.
constexpr std::uint64_t kSmallBytes = 64 << 20;

std::uint64_t monotonic_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

/// UTC with milliseconds, of a time on CLOCK_MONOTONIC.
std::string wall_time(std::uint64_t at_ns) {
  const auto age = std::chrono::nanoseconds(static_cast<std::int64_t>(monotonic_ns() - at_ns));
  return util::utc_text(std::chrono::system_clock::now() - age);
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ",") + name;
  }
  return text;
}

std::string_view name_of(model::DiscardTrigger trigger) {
  return model::kDiscardTriggerNames[static_cast<std::size_t>(trigger)];
}

}  // namespace

void DiscardWatch::observe(const block::BlockSample& sample, const model::Inventory& inventory,
                           model::Snapshot& snapshot) {
  now_ns_ = monotonic_ns();
  // What was unmounted since the last look had discarded until then.
  std::set<std::string> online = std::exchange(with_discard_, volumes_with_discard(inventory));
  online.insert(with_discard_.begin(), with_discard_.end());
  VolumesByDevice volumes = volumes_by_device(sample, inventory, online);
  std::map<std::string, Device> before = std::exchange(devices_, {});
  for (std::size_t i = 0; i < sample.devices.size(); ++i) {
    const block::DeviceSample& device = sample.devices[i];
    if (!device.io) {
      continue;
    }
    const std::string& name = device.device->name;
    if (const auto known = before.find(name); known != before.end() && known->second.since == device.io->since) {
      devices_.insert(before.extract(known));
    } else {
      devices_[name].since = device.io->since;
    }
    observe_device(device, std::move(volumes[name]), inventory, snapshot.devices[i]);
  }
  observe_filesystems(sample, inventory, snapshot);
  std::set<std::string> arrays;
  for (const model::Membership& member : inventory.memberships) {
    arrays.insert(member.array);
  }
  for (const std::string& array : arrays) {
    // Where no submitter was watched, nothing is known.
    if (sample.discards.count(array) != 0) {
      snapshot.array_discards.push_back({array, active_on(array, inventory)});
    }
  }
}

void DiscardWatch::observe_device(const block::DeviceSample& sample,
                                  std::map<std::string, analysis::DiscardVolume> volumes,
                                  const model::Inventory& inventory, model::DeviceSnapshot& out) {
  const std::string& name = sample.device->name;
  const model::OperationIo& io = sample.io->operation(model::Operation::discard);
  analysis::DiscardTick tick;
  tick.now_ns = now_ns_;
  tick.gap_ns = gap_ns_;
  tick.requests = {io.issues, io.completions, io.bytes, io.in_flight, sample.last_discard_end_ns};
  tick.volumes = std::move(volumes);
  Device& device = devices_[name];
  for (const analysis::DiscardBurst& burst : device.finder.observe(tick)) {
    tell(name, burst, inventory);
  }
  tell_long_ones(name, device, inventory);
  out.discards = device.finder.figures();
}

void DiscardWatch::observe_filesystems(const block::BlockSample& sample, const model::Inventory& inventory,
                                       model::Snapshot& snapshot) {
  for (const auto& twice : filesystems_.observe(inventory.filesystems, sample.discards, snapshot.taken_at)) {
    log::warning("volume={} filesystem=\"{}\" is mounted with discard and also trimmed by fstrim: use one of the two",
                 twice.volume, twice.mountpoint);
  }
  snapshot.filesystem_discards = filesystems_.figures();
}

void DiscardWatch::tell(const std::string& device, const analysis::DiscardBurst& burst,
                        const model::Inventory& inventory) {
  const std::string_view trigger = name_of(burst.trigger);
  log::Limiter& limiter = burst.bytes < kSmallBytes ? small_limiter_ : limiter_;
  const auto suppressed = limiter.admit(device + " " + std::string(trigger));
  if (!suppressed) {
    return;
  }
  log::info(
      "discard burst device={} trigger={} begin={} end={} seconds={:.3f} bytes={} requests={}{} comm=\"{}\" "
      "filesystem=\"{}\" array=\"{}\" suppressed={}",
      device, trigger, wall_time(burst.begin_ns), wall_time(burst.end_ns),
      static_cast<double>(burst.end_ns - burst.begin_ns) / 1e9, burst.bytes, burst.requests,
      burst.ranges ? fmt::format(" ranges={}", *burst.ranges) : "", burst.submitter,
      joined(mountpoints(burst.volumes, inventory)), joined(arrays_among(burst.volumes, device, inventory)),
      *suppressed);
}

void DiscardWatch::tell_long_ones(const std::string& name, Device& device, const model::Inventory& inventory) {
  for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
    const auto& burst = device.finder.running(i);
    if (!burst || now_ns_ - burst->begin_ns < kLongNs || burst->bytes < kSmallBytes ||
        device.announced[i] == burst->begin_ns) {
      continue;
    }
    device.announced[i] = burst->begin_ns;
    log::info(
        "discard burst continues device={} trigger={} begin={} bytes={} comm=\"{}\" filesystem=\"{}\" array=\"{}\"",
        name, name_of(burst->trigger), wall_time(burst->begin_ns), burst->bytes, burst->submitter,
        joined(mountpoints(burst->volumes, inventory)), joined(arrays_among(burst->volumes, name, inventory)));
  }
}

/// A member's burst is the array's as well if it was submitted there.
std::array<bool, model::kDiscardTriggers> DiscardWatch::active_on(const std::string& array,
                                                                  const model::Inventory& inventory) const {
  std::array<bool, model::kDiscardTriggers> active{};
  for (const model::Membership& member : inventory.memberships) {
    const auto device = devices_.find(member.device);
    if (member.array != array || device == devices_.end()) {
      continue;
    }
    for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
      const auto& burst = device->second.finder.running(i);
      active[i] = active[i] || (burst && arrays_among(burst->volumes, member.device, inventory).count(array) != 0);
    }
  }
  return active;
}

}  // namespace ssdpulse::runtime
