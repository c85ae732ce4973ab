// SPDX-License-Identifier: Apache-2.0
// HostWaits: the stage that finds what holds up I/O above the drives, and logs it.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>

#include "daemon/analysis/host_waits.h"
#include "daemon/analysis/room_trend.h"
#include "daemon/stages/stage.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::stages {

class HostWaits final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  /// What the I/Os of an operation took until the last tick.
  struct Operation {
    std::uint64_t busy_ns = 0;
    std::uint64_t completions = 0;
  };
  using Device = std::array<Operation, model::kOperations>;
  double in_flight_ratio(const Tick& tick);
  void add_tenants(const Tick& tick);

  analysis::HostWaits waits_;
  analysis::RoomTrend room_trend_;
  std::map<std::string, Device> devices_;
  std::optional<model::SteadyTime> before_;
  double disks_busy_seconds_ = 0;                       // of the last tick
  std::map<util::OutsideText, double> cgroup_seconds_;  // pressure of each at the last tick
  std::map<std::string, double> tenant_seconds_;
  std::map<std::string, model::WallTime> logged_;  // that go on, by cause and subject: their begin
  std::array<std::uint64_t, model::kHostWaitCauses> count_{};
  std::array<double, model::kHostWaitCauses> seconds_{};  // of those that are over
};

}  // namespace ssdpulse::stages
