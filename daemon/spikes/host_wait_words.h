// SPDX-License-Identifier: Apache-2.0
// HostWaitWords: what holds up I/O above the drives, as a sentence, and what to do about it. Pure.
#pragma once

#include <string>
#include <string_view>

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

/// 0 where it is not known.
double evidence_amount(const model::HostWait& wait, const char* key);

/// Whether it can hold up I/O to this disk: those that hold up the whole host concern each.
bool concerns(const model::HostWait& wait, const std::string& disk, const model::Snapshot& now);

}  // namespace ssdpulse::spikes
