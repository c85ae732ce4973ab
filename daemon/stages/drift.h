// SPDX-License-Identifier: Apache-2.0
// Drift: the stage that compares our I/O counts with the kernel's, each reading of both with earlier ones. A device of
// which no request is seen has no drift and no counts: they would be those of an idle one.
#pragma once

#include "daemon/analysis/accounting_drift.h"
#include "daemon/analysis/unseen_io.h"
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
    analysis::UnseenIo unseen;
    bool said = false;  // in the log, that it is unseen
  };
  PerDevice<Device> devices_;
};

/// Whether the device does I/O of which no request is seen, as of a second ago.
bool is_unseen(const Tick& tick, const DeviceTick& device);

}  // namespace ssdpulse::stages
