// SPDX-License-Identifier: Apache-2.0
// SettingChanges: the stage that records which settings of the host and of its devices have changed. Each change
// becomes a history row and, except at the first reading, a log line: "since when is it slow" is often "since this was
// changed". An unmounted file system, and a partition or volume that is gone, get an empty value. Changes of mounts,
// partitions and volumes have a limit, because any user may mount and unmount, and would push older changes out of the
// history; changes beyond it wait, and one that is reverted meanwhile is not recorded. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "daemon/base/outside_text.h"
#include "daemon/model/stage.h"

namespace ssdpulse::history {

class SettingChanges final : public model::Stage {
 public:
  static constexpr std::uint64_t kMaxChangesOfDevice = 128;  // changes in an hour
  static constexpr std::uint64_t kMaxChangesOfHost = 1024;

  model::Findings observe(const model::Tick& tick) override;

 private:
  struct Hour {
    model::SteadyTime begin;
    std::uint64_t changes = 0;

    bool has_room(std::uint64_t max_changes, model::SteadyTime now);
  };
  struct Settings {
    bool read = false;
    std::map<util::OutsideText, util::OutsideText> values = {};  // by name
    Hour hour = {};
    std::uint64_t waiting = 0;  // changes, at the last reading
  };

  void compare(const model::RecordedSettings& settings, const std::string& identity, model::SteadyTime now,
               model::Effects& effects);
  bool take(Settings& known, model::SteadyTime now);

  std::map<std::string, Settings> settings_;  // by identity of the device; empty: the host
  Hour hour_;
};

}  // namespace ssdpulse::history
