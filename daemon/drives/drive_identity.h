// SPDX-License-Identifier: Apache-2.0
// The identity of a drive, from sysfs now and from its own last answers.
#pragma once

#include <memory>

#include "daemon/model/nvme.h"
#include "daemon/sources/nvme/controllers.h"

namespace ssdpulse::drives {

/// Until the drive has said more.
std::shared_ptr<const model::NvmeIdentity> identity_from_sysfs(const nvme::NvmeSubsystem& subsystem);

/// Namespaces come and go between two identifications of their drive: those that sysfs has now.
std::shared_ptr<const model::NvmeIdentity> with_namespaces(std::shared_ptr<const model::NvmeIdentity> identity,
                                                           const nvme::NvmeSubsystem& subsystem);

}  // namespace ssdpulse::drives
