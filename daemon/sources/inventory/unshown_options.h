// SPDX-License-Identifier: Apache-2.0
// Options in force that mountinfo does not show, because the file system's own super block asks for them.
#pragma once

#include <string>

#include "daemon/sources/inventory/filesystems.h"

namespace ssdpulse::inventory {

/// `volume`: the kernel's name of what the mount lies on. `pool_directory`: of a bcachefs in sysfs, or empty.
model::UnshownOptions read_unshown_options(const Mount& mount, const std::string& volume,
                                           const std::string& pool_directory, const InventoryRoots& roots);

}  // namespace ssdpulse::inventory
