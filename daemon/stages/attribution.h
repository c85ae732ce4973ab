// SPDX-License-Identifier: Apache-2.0
// Attribution: the stage that turns the I/O that the kernel side counts by cgroup into the I/O of each tenant, in a
// bounded number of series.
#pragma once

#include <optional>

#include "daemon/analysis/tenants/tenant_slots.h"
#include "daemon/analysis/tenants/tenant_steps.h"
#include "daemon/stages/per_device.h"
#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class Attribution final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  struct Device {
    analysis::TenantSteps steps;
    analysis::TenantSlots slots;
    std::optional<model::WallTime> seen;  // when it was last seen
  };
  void check_accounting(const Tick& tick, Effects& effects);

  PerDevice<Device> devices_;
  std::optional<model::IoAccounting> accounting_;
};

}  // namespace ssdpulse::stages
