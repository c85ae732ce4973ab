// SPDX-License-Identifier: Apache-2.0
// DeviceTitle: a disk as its users know it: by what is mounted from it, or by its volumes, and then by the kernel's
// name. Texts are printable ASCII and bounded, whatever the names on the host are.
#pragma once

#include <string>
#include <vector>

#include "daemon/model/device.h"
#include "daemon/model/host_settings.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::model {

struct DeviceTitle {
  /// For sentences: "/srv/pgwal (vg0-wal on nvme0n1)", "/ and 2 more (sda)", "vg0-wal on nvme0n1", "nvme0n1".
  std::string full;
  /// For a column next to the kernel's name: "/srv/pgwal", "/ and 2 more", "vg0-wal"; empty where nothing is known.
  std::string use;
};

DeviceTitle device_title(const std::string& device, const std::vector<Filesystem>& filesystems,
                         const std::vector<Membership>& memberships);
DeviceTitle device_title(const Snapshot& snapshot, const std::string& device);
/// Also of an array.
DeviceTitle device_title(const HostSettings& settings, const std::string& device);

}  // namespace ssdpulse::model
