// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/discard_watch.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "daemon/util/utc_text.h"

namespace ssdpulse::runtime {
namespace {

constexpr std::uint64_t kLongNs = 60'000'000'000;  // a burst this long is announced before it ends

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

std::set<std::string> mountpoints(const std::string& device, const model::Inventory& inventory) {
  std::set<std::string> result;
  for (const model::Filesystem& filesystem : inventory.filesystems) {
    if (filesystem.device == device) {
      result.insert(filesystem.mountpoint);
    }
  }
  return result;
}

std::set<std::string> arrays_above(const std::string& device, const model::Inventory& inventory) {
  std::set<std::string> result;
  for (const model::Membership& member : inventory.memberships) {
    if (member.device == device) {
      result.insert(member.array);
    }
  }
  return result;
}

bool mounted_with_discard(const std::string& device, const model::Inventory& inventory) {
  return std::any_of(
      inventory.filesystems.begin(), inventory.filesystems.end(),
      [&](const model::Filesystem& filesystem) { return filesystem.device == device && filesystem.discard; });
}

std::string_view name_of(model::DiscardTrigger trigger) {
  return model::kDiscardTriggerNames[static_cast<std::size_t>(trigger)];
}

}  // namespace

void DiscardWatch::observe(const block::BlockSample& sample, const model::Inventory& inventory,
                           model::Snapshot& snapshot) {
  now_ns_ = monotonic_ns();
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
    observe_device(device, sample, inventory, snapshot.devices[i]);
  }
  std::set<std::string> arrays;
  for (const model::Membership& member : inventory.memberships) {
    arrays.insert(member.array);
  }
  for (const std::string& array : arrays) {
    // Where nobody was watched, nothing is known.
    if (const auto submitted = sample.discards.find(array); submitted != sample.discards.end()) {
      snapshot.array_discards.push_back({array, active_on(array, submitted->second, inventory)});
    }
  }
}

void DiscardWatch::observe_device(const block::DeviceSample& sample, const block::BlockSample& all,
                                  const model::Inventory& inventory, model::DeviceSnapshot& out) {
  const std::string& name = sample.device->name;
  const model::OperationIo& io = sample.io->operation(model::Operation::discard);
  analysis::DiscardTick tick;
  tick.now_ns = now_ns_;
  tick.gap_ns = gap_ns_;
  tick.requests = {io.issues, io.completions, io.bytes, io.in_flight, sample.last_discard_end_ns};
  tick.mounted_with_discard = mounted_with_discard(name, inventory);
  if (const auto own = all.discards.find(name); own != all.discards.end()) {
    tick.own = &own->second;
  }
  for (const std::string& array : arrays_above(name, inventory)) {
    if (const auto above = all.discards.find(array); above != all.discards.end()) {
      tick.arrays[array] = &above->second;
    }
  }
  Device& device = devices_[name];
  for (const analysis::DiscardBurst& burst : device.finder.observe(tick)) {
    tell(name, burst, inventory);
  }
  tell_long_ones(name, device, inventory);
  out.discards = device.finder.figures();
  if (out.discards[static_cast<std::size_t>(model::DiscardTrigger::fstrim)].active && tick.mounted_with_discard) {
    warn_of_both(name, inventory);
  }
}

void DiscardWatch::tell(const std::string& device, const analysis::DiscardBurst& burst,
                        const model::Inventory& inventory) {
  const std::string_view trigger = name_of(burst.trigger);
  const auto suppressed = limiter_.admit(device + " " + std::string(trigger));
  if (!suppressed) {
    return;
  }
  log::info(
      "discard burst device={} trigger={} begin={} end={} seconds={:.3f} bytes={} requests={} ranges={} comm=\"{}\" "
      "filesystem=\"{}\" array=\"{}\" suppressed={}",
      device, trigger, wall_time(burst.begin_ns), wall_time(burst.end_ns),
      static_cast<double>(burst.end_ns - burst.begin_ns) / 1e9, burst.bytes, burst.requests, burst.ranges,
      burst.submitter, joined(mountpoints(device, inventory)), joined(arrays_above(device, inventory)), *suppressed);
}

void DiscardWatch::tell_long_ones(const std::string& name, Device& device, const model::Inventory& inventory) {
  for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
    const auto& burst = device.finder.running(i);
    if (!burst || now_ns_ - burst->begin_ns < kLongNs || device.announced[i] == burst->begin_ns) {
      continue;
    }
    device.announced[i] = burst->begin_ns;
    log::info("discard burst goes on device={} trigger={} begin={} bytes={} comm=\"{}\" filesystem=\"{}\" array=\"{}\"",
              name, name_of(burst->trigger), wall_time(burst->begin_ns), burst->bytes, burst->submitter,
              joined(mountpoints(name, inventory)), joined(arrays_above(name, inventory)));
  }
}

void DiscardWatch::warn_of_both(const std::string& device, const model::Inventory& inventory) {
  if (warned_.insert(device).second) {
    log::warning(
        "device={} filesystem=\"{}\" is mounted with discard and trimmed by fstrim as well: use one of the two", device,
        joined(mountpoints(device, inventory)));
  }
}

/// A member's burst is the array's as well if the array was sent something of that trigger since it began.
std::array<bool, model::kDiscardTriggers> DiscardWatch::active_on(const std::string& array,
                                                                  const model::DiscardSubmitters& submitted,
                                                                  const model::Inventory& inventory) const {
  std::array<bool, model::kDiscardTriggers> active{};
  for (const model::Membership& member : inventory.memberships) {
    const auto device = devices_.find(member.device);
    if (member.array != array || device == devices_.end()) {
      continue;
    }
    const bool online = mounted_with_discard(member.device, inventory);
    for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
      const auto& burst = device->second.finder.running(i);
      const std::uint64_t last = burst ? analysis::last_submission_ns(submitted, burst->trigger, online) : 0;
      active[i] = active[i] || (last > 0 && last + gap_ns_ >= burst->begin_ns);
    }
  }
  return active;
}

}  // namespace ssdpulse::runtime
