// SPDX-License-Identifier: Apache-2.0
// HostWaitWords: what holds up I/O above the drives, as a sentence, and what to do about it. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/snapshot.h"
#include "daemon/spikes/spike_words.h"

namespace ssdpulse::spikes {

struct HostWaitWords {
  std::string what;  // a clause without time: "postgresql.service is held at its limit of 40 writes a second (io.max)"
  std::string_view next;
};
inline constexpr std::string_view kHostWaitRunbook = "SsdpulseIoHeldUp";

/// `now`: to name volumes and disks as people know them.
HostWaitWords host_wait_words(const model::HostWait& wait, const model::Snapshot& now, Tense tense);

/// From this share of the time on, a drive may take no more.
inline constexpr double kBusyRatio = 0.9;

/// Whether something may hold up bios on their way from a layer to what it lies on: a limit of a tenant, or a drive
/// that takes no more, or is slow. Such a wait is neither the layer's nor the drive's own time.
bool may_be_held_up(const model::Snapshot& now, const std::vector<std::string>& members);

/// Whether it can hold up I/O to this disk: those that hold up the whole host concern each.
bool concerns(const model::HostWait& wait, const std::string& disk, const model::Snapshot& now);

}  // namespace ssdpulse::spikes
