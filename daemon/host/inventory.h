// SPDX-License-Identifier: Apache-2.0
// Inventory, as read from this host: its disks, what they are part of, and what is mounted on them. One pass over sysfs
// and mountinfo, cheap enough for every uevent. Knows nothing about BPF and keeps no state.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/model/device.h"

namespace ssdpulse::host {

/// Where the kernel's file systems are mounted; tests put a tree of their own there.
struct InventoryRoots {
  std::string sys = "/sys";
  std::string proc = "/proc";
  std::string dev = "/dev";
};

/// Shell globs on device names (the head's name for NVMe multipath). A name wins over a pattern, even over those that
/// are excluded by default, because naming a disk is deliberate. Between two names or two patterns, exclude wins.
struct DeviceFilter {
  std::vector<std::string> include{"*"};
  std::vector<std::string> exclude;
  [[nodiscard]] bool takes(const std::string& device) const;
};

/// Fails only if there is no list of block devices at all; anything else that is missing gets its default value, or a
/// line in `warnings` if it matters. Disks that vanish meanwhile are left out.
/// `previous` (may be null) saves virtio disks the request that reading their serial number costs, while their diskseq
/// is the same.
util::Result<model::Inventory> read_inventory(const InventoryRoots& roots, const DeviceFilter& filter,
                                              const model::Inventory* previous = nullptr);

/// The disks that the configuration includes by name (not by a pattern) and that are nevertheless not measured: each
/// with the reason in words, in the order of `include`.
std::vector<std::pair<std::string, std::string>> named_and_not_measured(const std::vector<std::string>& include,
                                                                        const model::Inventory& inventory);

}  // namespace ssdpulse::host
