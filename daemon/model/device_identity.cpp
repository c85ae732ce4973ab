// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/device_identity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <tuple>
#include <utility>

#include "daemon/model/stage.h"

namespace ssdpulse::model {
namespace {

/// The kernel's own, nvme.VENDOR-SERIAL-MODEL-NSID, for a namespace without identifiers or whose identifiers it took
/// away as duplicates.
bool is_made_up(const util::OutsideText& wwid) { return wwid.starts_with("nvme."); }

void add(std::string& text, std::string_view what, const util::OutsideText& value) {
  if (!value.empty()) {
    text += fmt::format("{}{}{}", text.empty() ? "" : " | ", what, util::for_history(value));
  }
}

/// All but the WWID.
std::string text_of_drive(const DeviceIdentity& identity) {
  std::string text;
  add(text, "", identity.model);
  add(text, "serial ", identity.serial);
  add(text, "part ", identity.part);
  add(text, "subsystem ", identity.subsystem);
  return text;
}

/// The multipath device of each device that is a path of it.
std::map<std::string, std::string> multipath_of(const std::vector<Membership>& memberships) {
  std::map<std::string, std::string> joined;
  for (const Membership& member : memberships) {
    if (member.multipath) {
      joined.emplace(member.device, member.array);
    }
  }
  return joined;
}

/// For each device with at least one other of its identity: those others, in the order of `devices`.
std::map<std::string, std::vector<std::string>> clashes_of(const std::vector<const Device*>& devices) {
  struct Member {
    const Device* device;
    DeviceIdentity identity;
  };
  std::map<std::tuple<util::OutsideText, util::OutsideText, std::string, util::OutsideText>, std::vector<Member>>
      alike;  // in all but the WWID
  for (const Device* device : devices) {
    const DeviceIdentity identity = identity_of(*device);
    if (identity.lasts()) {
      alike[std::tuple(identity.model, identity.serial, identity.part, identity.subsystem)].push_back(
          {device, identity});
    }
  }
  std::map<std::string, std::vector<std::string>> clashes;
  for (const auto& [key, group] : alike) {
    for (const Member& member : group) {
      for (const Member& other : group) {
        if (&member != &other && indistinguishable(member.identity, other.identity)) {
          clashes[member.device->name].push_back(other.device->name);
        }
      }
    }
  }
  return clashes;
}

DeviceKey make_key(const Device& device, DistinctIdentity distinct) {
  DeviceKey key{std::move(distinct.text), device.name, util::for_history(device.model),
                util::for_history(device.serial)};
  const DeviceIdentity identity = identity_of(device);
  if (!distinct.clashes && identity.lasts()) {
    key.without_wwid = identity.text_without_wwid();
    key.attached = device.attachment.empty() ? "" : key.identity + " | at " + util::for_history(device.attachment);
  }
  return key;
}

}  // namespace

std::string DeviceIdentity::text() const {
  std::string text = lasts() ? text_of_drive(*this) : "";
  add(text, "wwid ", wwid);
  return text;
}

std::string DeviceIdentity::text_without_wwid() const { return serial.empty() ? "" : text_of_drive(*this); }

DeviceIdentity identity_of(const Device& device) {
  return {device.model, device.serial, device.part, device.subsystem,
          is_made_up(device.wwid) ? util::OutsideText() : device.wwid};
}

bool indistinguishable(const DeviceIdentity& a, const DeviceIdentity& b) {
  return a.lasts() && b.lasts() && a.model == b.model && a.serial == b.serial && a.part == b.part &&
         a.subsystem == b.subsystem && (a.wwid == b.wwid || a.wwid.empty() || b.wwid.empty());
}

std::map<std::string, DistinctIdentity> distinct_identities(const std::vector<const Device*>& devices) {
  const auto clashes = clashes_of(devices);
  std::set<std::string> without_wwid;  // devices
  for (const Device* device : devices) {
    const auto clash = clashes.find(device->name);
    if (clash != clashes.end() && identity_of(*device).wwid.empty()) {
      without_wwid.insert(device->name);
      without_wwid.insert(clash->second.begin(), clash->second.end());
    }
  }
  std::map<std::string, DistinctIdentity> distinct;
  std::map<std::string, int> count_of_text;
  for (const Device* device : devices) {
    DeviceIdentity identity = identity_of(*device);
    if (without_wwid.contains(device->name)) {
      identity.wwid.clear();  // at the next boot, another of these devices may have it
    }
    DistinctIdentity own{identity.lasts() ? identity.text() : device->name, clashes.contains(device->name)};
    if (own.clashes) {
      own.text += " | at " + (device->attachment.empty() ? device->name : util::for_history(device->attachment));
    }
    ++count_of_text[own.text];
    distinct.emplace(device->name, std::move(own));
  }
  for (auto& [name, own] : distinct) {
    if (count_of_text.at(own.text) > 1) {
      own.text += " | name " + name;
    }
  }
  return distinct;
}

void HistoryKeys::learn(const Tick& tick) {
  std::vector<const Device*> present;
  for (const DeviceTick& one : tick.devices) {
    present.push_back(one.block.device.get());
  }
  auto distinct = distinct_identities(present);
  const std::map<std::string, KeyedDevice> before = std::exchange(devices_, {});
  for (const DeviceTick& one : tick.devices) {
    const std::shared_ptr<const Device>& device = one.block.device;
    KeyedDevice now{device, distinct.at(device->name).clashes,
                    std::make_shared<const DeviceKey>(make_key(*device, distinct.at(device->name)))};
    const auto old = before.find(device->name);
    if (!now.clashes && old != before.end() && old->second.clashes &&
        identity_of(*old->second.device) == identity_of(*device)) {
      now.clashes = true;
      now.key = old->second.key;
    }
    devices_.emplace(device->name, std::move(now));
  }
}

void HistoryKeys::set_history_keys(Tick& tick) {
  const bool same = tick.devices.size() == devices_.size() &&
                    std::all_of(tick.devices.begin(), tick.devices.end(), [&](const DeviceTick& one) {
                      const auto known = devices_.find(one.block.device->name);
                      return known != devices_.end() && known->second.device == one.block.device;
                    });
  if (!same) {
    learn(tick);
  }
  for (DeviceTick& device : tick.devices) {
    device.history_key = devices_.at(device.block.device->name).key;
  }
}

std::vector<IdentityClash> reported_clashes(const std::vector<const Device*>& devices,
                                            const std::vector<Membership>& memberships) {
  std::map<std::string, const Device*> by_name;
  for (const Device* device : devices) {
    by_name.emplace(device->name, device);
  }
  const auto joined = multipath_of(memberships);
  std::vector<IdentityClash> reported;
  std::set<std::string> seen;
  for (const auto& [name, others] : clashes_of(devices)) {
    if (!seen.insert(name).second) {
      continue;
    }
    IdentityClash clash{{name}, identity_of(*by_name.at(name))};
    clash.devices.insert(clash.devices.end(), others.begin(), others.end());
    seen.insert(others.begin(), others.end());
    std::sort(clash.devices.begin(), clash.devices.end());
    const auto array = joined.find(name);
    const bool one_drive = array != joined.end() &&
                           std::all_of(clash.devices.begin(), clash.devices.end(), [&](const std::string& device) {
                             const auto found = joined.find(device);
                             return found != joined.end() && found->second == array->second;
                           });
    if (one_drive) {
      continue;
    }
    const std::uint64_t size = by_name.at(name)->size_bytes;
    clash.sizes_differ = std::any_of(others.begin(), others.end(),
                                     [&](const std::string& other) { return by_name.at(other)->size_bytes != size; });
    reported.push_back(std::move(clash));
  }
  return reported;
}

std::string clash_text(const IdentityClash& clash) {
  return fmt::format(
      "{} report one identity ({}): {}; the history of each is kept by where it is attached, and does not "
      "follow it elsewhere",
      fmt::join(clash.devices, ", "), clash.identity.text(),
      clash.sizes_differ ? "their sizes differ, so they are different drives"
                         : "different drives, or paths to one that no multipath device joins");
}

}  // namespace ssdpulse::model
