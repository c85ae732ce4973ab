// SPDX-License-Identifier: Apache-2.0
// same_disk(), same_paths(), same_device(), same_drive(): whether a device is still the same one. Names are reused: for
// the next disk in a slot, for the next loop device. One rule for all code that keeps state about a device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "daemon/model/device.h"
#include "daemon/model/device_identity.h"
#include "daemon/model/nvme.h"

namespace ssdpulse::model {

/// The disk of one queue: the same name and, since Linux 5.15, the same diskseq. Before that the name has to suffice.
inline bool same_disk(const std::string& name, std::uint64_t diskseq, const Path& now) {
  return name == now.disk_name && diskseq == now.diskseq;
}
inline bool same_disk(const Path& before, const Path& now) { return same_disk(before.disk_name, before.diskseq, now); }

/// With the same paths in the same order.
inline bool same_paths(const Device& before, const Device& now) {
  return std::equal(before.paths.begin(), before.paths.end(), now.paths.begin(), now.paths.end(),
                    [](const Path& a, const Path& b) { return same_disk(a, b); });
}

/// The same piece of hardware under the same name: its counters continue, whichever paths appear or disappear.
/// Different hardware has its own counters, with its own DeviceIo::since, which distinguishes them later.
inline bool same_device(const Device& before, const Device& now) {
  if (before.paths.size() == 1 && now.paths.size() == 1) {
    return same_disk(before.paths[0], now.paths[0]) && before.major == now.major && before.minor == now.minor;
  }
  return identity_of(before) == identity_of(now);
}

/// The same drive behind the same controller: a controller's number is soon given to the next one.
inline bool same_drive(const NvmeIdentity& before, const NvmeIdentity& now) {
  return before.controller == now.controller && before.serial == now.serial && before.model == now.model &&
         before.subsystem_nqn == now.subsystem_nqn;
}

}  // namespace ssdpulse::model
