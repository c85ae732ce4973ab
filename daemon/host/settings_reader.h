// SPDX-License-Identifier: Apache-2.0
// HostSettings, as read from this host: how it is set up for its disks. One pass over small files, bounded, as any
// user. What cannot be read is absent. Sends nothing, changes nothing and keeps no state.
//
// `root`: of the host's tree, with sys, proc and etc in it; empty: this host. Tests put a tree of their own there.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/host_settings.h"
#include "daemon/model/host_signals.h"

namespace ssdpulse::host {

/// Only one disk, or one array without its disks; without its PCIe link. Asks only the kernel, no device, so that it
/// may be called where nothing may wait.
model::DiskSettings read_disk_settings(const std::string& root, const model::Device& device);

/// Only HostSettings::files.
model::Attributes read_host_files(const std::string& root);

/// How full file systems are: only those that were asked, by whoever can wait for their answers.
void add_rooms(const std::vector<model::FilesystemRoom>& rooms, model::HostSettings& settings);

/// `inventory` lists the disks and arrays that there are, and what is mounted on them. Without rooms.
model::HostSettings read(const std::string& root, const model::Inventory& inventory);

}  // namespace ssdpulse::host
