// SPDX-License-Identifier: Apache-2.0
// Reads one disk from sysfs: identity, limits of its queue, transport. Checks only the syntax of attributes;
// inventory.cpp adds coverage and multipath.
#pragma once

#include <optional>
#include <string>

#include "daemon/model/device.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::inventory {

/// Queue attributes of the disk in `directory` (hidden paths too). `disk_name` in sysfs spelling.
model::Path read_path(const std::string& directory, const std::string& disk_name);

/// Everything except coverage and paths. Nothing if the disk is hidden (no device number), or vanished meanwhile.
/// `known_serial`, if there is one, is used for a virtio disk instead of asking the disk.
std::optional<model::Device> read_device(const std::string& directory, const std::string& disk_name,
                                         const std::optional<util::OutsideText>& known_serial);

/// queue/iostats: whether the kernel keeps the disk's statistics.
bool keeps_iostats(const std::string& directory);

}  // namespace ssdpulse::inventory
