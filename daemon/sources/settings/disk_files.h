// SPDX-License-Identifier: Apache-2.0
// disk_files() and others: what the sysfs files of one disk, array or controller contain, 256 bytes of each at most.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/settings.h"

namespace ssdpulse::settings {

/// `directory`: of a disk or an array, in sysfs.
model::Attributes disk_files(const std::string& directory);

/// `directory`: of an NVMe controller. Only what the kernel knows by itself.
model::Attributes controller_files(const std::string& directory);

/// Adds the files of its PCIe link. Each reading asks the device, which may wake it, or wait for one that is stuck.
void add_link_files(const std::string& directory, model::Attributes& files);

/// `directory`: of the disk, in sysfs; `disk`: the kernel's name of it.
std::vector<model::PartitionSettings> partitions(const std::string& directory, const std::string& disk);

}  // namespace ssdpulse::settings
