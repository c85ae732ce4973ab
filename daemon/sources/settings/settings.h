// SPDX-License-Identifier: Apache-2.0
// Reads how a host is set up for its disks: one pass over small files, bounded, as any user. What cannot be read is
// absent. Sends nothing, changes nothing and keeps no state.
#pragma once

#include <string>

#include "daemon/model/settings.h"

namespace ssdpulse::settings {

/// Where the host begins; tests put a tree of their own there, with sys, proc and etc in it.
struct SettingsRoot {
  std::string directory;  // empty: this host
};

/// One disk alone, or one array without its disks; without its PCIe link. Asks the kernel and no device, so that it may
/// be called where nothing may wait.
model::DiskSettings read_disk(const SettingsRoot& root, const model::Device& device);

/// HostSettings::files alone.
model::Attributes read_host_files(const SettingsRoot& root);

/// `inventory` says which disks and arrays there are, and what is mounted on them.
model::HostSettings read(const SettingsRoot& root, const model::Inventory& inventory);

}  // namespace ssdpulse::settings
