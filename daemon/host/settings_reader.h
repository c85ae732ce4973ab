// SPDX-License-Identifier: Apache-2.0
// Reads how a host is set up for its disks: one pass over small files, bounded, as any user. What cannot be read is
// absent. Sends nothing, changes nothing and keeps no state.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/host_settings.h"
#include "daemon/model/host_signals.h"

namespace ssdpulse::host {

/// The root of the host's tree; tests put a tree of their own there, with sys, proc and etc in it.
struct SettingsRoot {
  std::string directory;  // empty: this host
};

/// Only one disk, or one array without its disks; without its PCIe link. Asks only the kernel, no device, so that it
/// may be called where nothing may wait.
model::DiskSettings read_disk_settings(const SettingsRoot& root, const model::Device& device);

/// Only HostSettings::files.
model::Attributes read_host_files(const SettingsRoot& root);

/// How full file systems are: only those that were asked, by whoever can wait for their answers.
void add_rooms(const std::vector<model::FilesystemRoom>& rooms, model::HostSettings& settings);

/// `inventory` lists the disks and arrays that there are, and what is mounted on them. Without rooms.
model::HostSettings read(const SettingsRoot& root, const model::Inventory& inventory);

}  // namespace ssdpulse::host
