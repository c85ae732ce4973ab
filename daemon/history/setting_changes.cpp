// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/setting_changes.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

namespace ssdpulse::history {
namespace {

constexpr std::string_view kMount = "mount ";
constexpr std::size_t kMaxOptionBytes = 512;  // of the options of a mount, and of values in the log

/// Names of what may disappear; anything else that is missing could not be read.
bool may_go_away(const util::OutsideText& name) {
  return name.starts_with(kMount) || name.starts_with("partition ") || name.starts_with("volume ");
}

/// Adds how the device's file systems are mounted.
void add_mounts(const model::Inventory& inventory, model::RecordedSettings& settings) {
  for (const model::Filesystem& filesystem : inventory.filesystems) {
    if (filesystem.device == settings.device) {
      std::string all = filesystem.fstype.raw();
      for (const util::OutsideText& option : filesystem.options) {
        all += (option == *filesystem.options.begin() ? " " : ",") + option.raw();
      }
      settings.values[std::string(kMount) + filesystem.mountpoint.raw()] = all.substr(0, kMaxOptionBytes);
    }
  }
}

/// Null: no such device.
const model::DeviceKey* key_of(const model::Tick& tick, const std::string& device) {
  const auto found = std::find_if(tick.devices.begin(), tick.devices.end(),
                                  [&](const model::DeviceTick& one) { return one.block.device->name == device; });
  return found == tick.devices.end() ? nullptr : found->history_key.get();
}

}  // namespace

model::Findings SettingChanges::observe(const model::Tick& tick) {
  model::Findings findings;
  std::erase_if(settings_, [&](const auto& known) {
    return !known.first.empty() &&
           std::none_of(tick.devices.begin(), tick.devices.end(),
                        [&](const model::DeviceTick& one) { return one.history_key->identity == known.first; });
  });
  for (const model::RecordedSettings& read : tick.settings_read) {
    if (read.device.empty()) {
      compare(read, "", tick.at, findings.effects);
    } else if (const model::DeviceKey* key = key_of(tick, read.device)) {
      model::RecordedSettings settings = read;
      add_mounts(*tick.inventory, settings);
      compare(settings, key->identity, tick.at, findings.effects);
    }
  }
  std::uint64_t waiting = 0;
  for (const auto& [identity, known] : settings_) {
    waiting += known.waiting;
  }
  findings.values = [waiting](model::Snapshot& snapshot) { snapshot.setting_changes_waiting = waiting; };
  return findings;
}

bool SettingChanges::Hour::has_room(std::uint64_t max_changes, model::SteadyTime now) {
  if (changes == 0 || now - begin >= std::chrono::hours(1)) {
    *this = {now, 0};
  }
  return changes < max_changes;
}

/// Whether one more change may become a row now.
bool SettingChanges::take(Settings& known, model::SteadyTime now) {
  if (!known.hour.has_room(kMaxChangesOfDevice, now) || !hour_.has_room(kMaxChangesOfHost, now)) {
    ++known.waiting;
    return false;
  }
  ++known.hour.changes;
  ++hour_.changes;
  return true;
}

/// Only mounts, partitions and volumes are limited: a change of any other setting never waits, and there are few. All
/// values of the first reading are recorded: their number is bounded where they are read.
void SettingChanges::compare(const model::RecordedSettings& settings, const std::string& identity,
                             model::SteadyTime now, model::Effects& effects) {
  Settings& known = settings_[identity];
  const bool first = !std::exchange(known.read, !identity.empty());
  known.waiting = 0;
  const auto log_change = [&](const util::OutsideText& name, const util::OutsideText& before,
                              const util::OutsideText& value) {
    effects.lines.push_back(log::line(log::Level::info, "setting changed", log::field("device", settings.device),
                                      log::quoted("setting", util::for_log(name, kMaxOptionBytes)),
                                      log::quoted("before", util::for_log(before, kMaxOptionBytes)),
                                      log::quoted("now", util::for_log(value, kMaxOptionBytes))));
  };
  for (const auto& [name, value] : settings.values) {
    const auto before = known.values.find(name);
    const bool is_new = before == known.values.end();
    if ((!is_new && before->second == value) || (!first && may_go_away(name) && !take(known, now))) {
      continue;
    }
    if (!is_new) {
      log_change(name, before->second, value);
    }
    known.values[name] = value;
    effects.rows.settings.push_back({identity, util::for_history(name), util::for_history(value)});
  }
  std::erase_if(known.values, [&](const auto& one) {
    const auto& [name, value] = one;
    if (settings.values.count(name) > 0 || !may_go_away(name) || !take(known, now)) {
      return false;
    }
    log_change(name, value, "");
    effects.rows.settings.push_back({identity, util::for_history(name), ""});
    return true;
  });
}

}  // namespace ssdpulse::history
