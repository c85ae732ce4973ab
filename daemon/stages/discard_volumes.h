// SPDX-License-Identifier: Apache-2.0
// Joins each device with the volumes to which its discards are submitted, and with what is on them. Pure.
#pragma once

#include <map>
#include <set>
#include <string>

#include "daemon/analysis/discard_bursts.h"
#include "daemon/model/device.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::stages {

/// The volumes whose file system is mounted with discard; those where programs also discard in its name are `true`.
using DiscardingVolumes = std::map<std::string, bool>;
DiscardingVolumes volumes_with_discard(const model::Inventory& inventory);

/// Of the file systems that lie directly on these volumes.
std::set<util::OutsideText> mountpoints(const std::set<std::string>& volumes, const model::Inventory& inventory);

/// Those of the volumes that are not on the device itself; for a partition of an array, the array.
std::set<std::string> arrays_among(const std::set<std::string>& volumes, const std::string& device,
                                   const model::Inventory& inventory);

using VolumesByDevice = std::map<std::string, std::map<std::string, analysis::DiscardVolume>>;

/// The watched volumes, by the device that carries out what is sent to them; they point into `submitted`.
/// `with_discard`: the volumes where kernel threads, and perhaps programs, are `online`. A disk is used like its
/// partitions: what is sent to a partition that cannot be distinguished counts for the disk.
VolumesByDevice volumes_by_device(const std::map<std::string, model::DiscardSubmitters>& submitted,
                                  const model::Inventory& inventory, const DiscardingVolumes& with_discard);

}  // namespace ssdpulse::stages
