// SPDX-License-Identifier: Apache-2.0
// Is it still the same device? Names are given again: to the next disk in a slot, to the next loop device. One rule for
// all who keep something of a device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "daemon/model/device.h"

namespace ssdpulse::model {

/// The disk of one queue: under the same name, and, since Linux 5.15, with the same number of its life. Before that the
/// name has to do.
inline bool same_disk(const std::string& name, std::uint64_t diskseq, const Path& now) {
  return name == now.disk_name && diskseq == now.diskseq;
}
inline bool same_disk(const Path& before, const Path& now) { return same_disk(before.disk_name, before.diskseq, now); }

/// With the same paths in the same order.
inline bool same_paths(const Device& before, const Device& now) {
  return std::equal(before.paths.begin(), before.paths.end(), now.paths.begin(), now.paths.end(),
                    [](const Path& a, const Path& b) { return same_disk(a, b); });
}

/// The same piece of hardware under the same name: its counters go on, whatever paths come and go. Another one has
/// counters of its own, with a DeviceIo::since of its own, which is what tells them apart later on.
inline bool same_device(const Device& before, const Device& now) {
  if (before.paths.size() == 1 && now.paths.size() == 1) {
    return same_disk(before.paths[0], now.paths[0]) && before.major == now.major && before.minor == now.minor;
  }
  return before.wwid == now.wwid && before.serial == now.serial;
}

}  // namespace ssdpulse::model
