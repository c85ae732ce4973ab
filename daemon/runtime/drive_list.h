// SPDX-License-Identifier: Apache-2.0
// The NVMe drives of `ssdpulse devices`: what each can report, and where its write amplification would come from.
#pragma once

#include <map>
#include <memory>
#include <ostream>
#include <string>

#include "daemon/model/nvme.h"

namespace ssdpulse::runtime {

/// By device, of the drives that answered.
using Identities = std::map<std::string, std::shared_ptr<const model::NvmeIdentity>>;

/// Asks every live drive once, for as long as a drive may take that is well; says of those that cannot be read why.
/// Prints nothing on a host without NVMe drives. Returns who the drives are.
Identities print_drives(std::ostream& out);

}  // namespace ssdpulse::runtime
