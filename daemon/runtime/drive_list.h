// SPDX-License-Identifier: Apache-2.0
// Which NVMe drives does this host have, what can each tell, and where would its write amplification come from?
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
