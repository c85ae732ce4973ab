// SPDX-License-Identifier: Apache-2.0
// Layers as sysfs shows them: their kinds, what they lie on, and their health. No ioctl and no privilege: a dm device's
// kind comes from its UUID, and how full a thin pool or a snapshot is stays unknown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/host/disks.h"
#include "daemon/host/inventory.h"
#include "daemon/model/host_signals.h"
#include "daemon/model/layers.h"

namespace ssdpulse::host {

/// Of all stacked devices, and those with a size whose driver takes I/O without requests. Sorted by name.
std::vector<model::Layer> read_layers(const InventoryRoots& roots, const Stacking& stacking,
                                      const std::vector<model::Device>& devices);

/// Nothing if the kernel says nothing about such a layer. `known`, if there is one, saves reading what changes seldom.
std::optional<model::VolumeSignals> read_volume_signals(const std::string& sys_root, const model::Layer& layer,
                                                        const model::VolumeSignals* known = nullptr);

}  // namespace ssdpulse::host
