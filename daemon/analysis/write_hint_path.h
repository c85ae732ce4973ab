// SPDX-License-Identifier: Apache-2.0
// Where a hint ends on this host: what the kernel carries, what the device accepts and what the drive could do with it.
#pragma once

#include "daemon/model/device.h"
#include "daemon/model/nvme.h"
#include "daemon/model/write_hint_path.h"

namespace ssdpulse::analysis {

/// `kernel`: how far hints get on any device; `drive`: its Identify data, null where there is none.
model::WriteHintPath write_hint_path(model::HintReach kernel, const model::Device& device,
                                     const model::NvmeIdentity* drive);

}  // namespace ssdpulse::analysis
