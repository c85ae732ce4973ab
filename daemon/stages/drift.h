// SPDX-License-Identifier: Apache-2.0
// Drift: the stage that reports how far our I/O counts are from the kernel's, and finds devices of which no request is
// seen. Those have no drift and no counts: they would be those of an idle one.
#pragma once

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
    analysis::UnseenIo unseen;
    bool said = false;  // in the log, that it is unseen
  };
  PerDevice<Device> devices_;
};

/// Whether the device does I/O of which no request is seen, as of a second ago.
bool is_unseen(const Tick& tick, const DeviceTick& device);

}  // namespace ssdpulse::stages
