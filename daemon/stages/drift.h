// SPDX-License-Identifier: Apache-2.0
// Drift: the stage that compares our I/O counts with the kernel's, each reading of both with earlier ones.
#pragma once

#include "daemon/analysis/accounting_drift.h"
#include "daemon/stages/per_device.h"
#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class Drift final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  struct Device {
    std::uint64_t kernel_account = 0;
    analysis::AccountingDrift drift;
  };
  PerDevice<Device> devices_;
};

}  // namespace ssdpulse::stages
