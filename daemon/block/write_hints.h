// SPDX-License-Identifier: Apache-2.0
// WriteHints: how far a hint gets on this host: what the kernel carries, the device accepts and the drive could do with
// it.
#pragma once

#include "daemon/model/device.h"
#include "daemon/model/nvme_drive.h"
#include "daemon/model/stage.h"
#include "daemon/model/write_details.h"

namespace ssdpulse::block {

/// `kernel`: how far hints get on any device; `drive`: its Identify data, null if there is none.
model::WriteHintPath write_hint_path(model::HintReach kernel, const model::Device& device,
                                     const model::NvmeIdentity* drive);

/// The stage that reports how far a write's lifetime hint gets, and which writes the drive itself prefers.
class WriteHints final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;
};

}  // namespace ssdpulse::block
