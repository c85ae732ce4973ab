// SPDX-License-Identifier: Apache-2.0
// How far a hint gets on this host: what the kernel carries, the device accepts and the drive could do with it.
#pragma once

#include "daemon/model/device.h"
#include "daemon/model/nvme.h"
#include "daemon/model/write_hint_path.h"

namespace ssdpulse::analysis {

/// `kernel`: how far hints get on any device; `drive`: its Identify data, null if there is none.
model::WriteHintPath write_hint_path(model::HintReach kernel, const model::Device& device,
                                     const model::NvmeIdentity* drive);

}  // namespace ssdpulse::analysis
