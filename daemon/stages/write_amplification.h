// SPDX-License-Identifier: Apache-2.0
// WriteAmplification: the stage that determines how much each NVMe drive writes to its media for what the host writes,
// across restarts. Keeps each drive's ledgers, asks for their past, and makes the history's rows of each minute.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/stages/drive_ledgers.h"
#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class WriteAmplification final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  struct Drive {
    explicit Drive(log::Limiter& limiter) : ledgers(limiter) {}
    DriveLedgers ledgers;
    std::uint64_t discarded_bytes = 0;             // when the last minute ended
    std::optional<model::SteadyTime> accepted_at;  // the last reading of counters that was accepted
    std::optional<model::SteadyTime> asked_at;     // for its past; waiting for the answer
    model::SteadyTime asks_again_at;
    bool without_past = false;  // that takes long: what is known without it is reported
  };
  void forget_others(const Tick& tick);
  void observe_drive(const model::DriveTick& seen, Drive& drive, const Tick& tick, Effects& effects);
  static void take_past(const model::DriveTick& seen, Drive& drive, const Tick& tick, Effects& effects);
  static void ask_for_past(const model::DriveTick& seen, Drive& drive, const Tick& tick, Effects& effects);
  static void begin_without_past(const model::DriveTick& seen, Drive& drive, const std::string& why, Effects& effects);
  void end_minute(history::Minute minute, const Tick& tick, Effects& effects);

  std::map<std::string, Drive> drives_;  // by key
  std::optional<history::Minute> minute_;
  log::Limiter limiter_{std::chrono::minutes(10)};  // for lines that one drive could cause all the time
};

}  // namespace ssdpulse::stages
