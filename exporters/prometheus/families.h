// SPDX-License-Identifier: Apache-2.0
// Which metrics does ssdpulse export? The lists, one per topic; a new topic adds its list here and in families.cpp.
// Names, types and labels are a contract: changing one is a breaking change.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "exporters/prometheus/family.h"

namespace ssdpulse::exposition {

std::span<const FamilyDescription> io_families();        // what requests did on each device
std::span<const FamilyDescription> discard_families();   // who sent bursts of discards to each device
std::span<const FamilyDescription> write_families();     // who wrote, and with which hints
std::span<const FamilyDescription> device_families();    // what the host has, and what lives on it
std::span<const FamilyDescription> nvme_families();      // how NVMe drives wear, and how reading them goes
std::span<const FamilyDescription> nvme_log_families();  // the fields of their log pages
std::span<const FamilyDescription> spike_families();     // when latency was out of the ordinary, and why
std::span<const FamilyDescription> web_families();       // whom the web server answers, and whom it turns away
std::span<const FamilyDescription> self_families();      // how well ssdpulse itself sees and what it costs

/// When counters that belong to no device began: with the daemon. Absent while /proc/self was not read.
std::optional<model::WallTime> daemon_start(const model::Snapshot& snapshot);

/// Every family that has a sample in this Snapshot. The result borrows from the Snapshot.
std::vector<Family> collect(const model::Snapshot& snapshot);

}  // namespace ssdpulse::exposition
