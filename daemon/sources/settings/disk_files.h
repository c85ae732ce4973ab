// SPDX-License-Identifier: Apache-2.0
// What do the files of one disk, array or controller contain?
#pragma once

#include <string>
#include <vector>

#include "daemon/model/settings.h"

namespace ssdpulse::settings {

/// `directory`: in sysfs, of a disk or an array.
model::Attributes disk_files(const std::string& directory);

/// `directory`: of an NVMe controller. Only what the kernel knows by itself.
model::Attributes controller_files(const std::string& directory);

/// Files that ask the PCIe device at each reading, which may wake it, or wait for one that is stuck.
void add_link_files(const std::string& directory, model::Attributes& files);

std::vector<model::PartitionSettings> partitions(const std::string& directory, const std::string& disk);

}  // namespace ssdpulse::settings
