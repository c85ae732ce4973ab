// SPDX-License-Identifier: Apache-2.0
// SettingChanges: the stage that records which settings of the host and of its devices have changed. Each change
// becomes a history row and, except at the first reading, a log line: "since when is it slow" is often "since this was
// changed". An unmounted file system, and a partition or volume that is gone, get an empty value.
#pragma once

#include <map>
#include <string>

#include "daemon/stages/stage.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::stages {

class SettingChanges final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  void compare(const model::RecordedSettings& settings, const std::string& identity, Effects& effects);

  std::map<std::string, std::map<util::OutsideText, util::OutsideText>>
      known_;  // by identity of the device; empty: the host
};

}  // namespace ssdpulse::stages
