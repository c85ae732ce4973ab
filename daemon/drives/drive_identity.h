// SPDX-License-Identifier: Apache-2.0
// The identity of a drive, from sysfs now and from its own last answers.
#pragma once

#include <memory>

#include "daemon/model/nvme.h"
#include "daemon/sources/nvme/controllers.h"

namespace ssdpulse::drives {

/// Used until the drive itself has reported more.
std::shared_ptr<const model::NvmeIdentity> identity_from_sysfs(const nvme::NvmeSubsystem& subsystem);

/// With the namespaces that sysfs has now: they appear and disappear between two identifications of their drive.
std::shared_ptr<const model::NvmeIdentity> with_namespaces(std::shared_ptr<const model::NvmeIdentity> identity,
                                                           const nvme::NvmeSubsystem& subsystem);

}  // namespace ssdpulse::drives
