// SPDX-License-Identifier: Apache-2.0
// A spike, a burst and a wait from the history, as if they had been seen now, so that both are described in the same
// words. Pure.
#pragma once

#include <optional>

#include "daemon/live/recent_past.h"
#include "daemon/model/past.h"

namespace ssdpulse::live {

/// Whatever does not look like evidence is left out.
model::LatencySpike spike_of(const model::PastSpike& past);
Burst burst_of(const model::PastBurst& past);
/// Nothing if its cause is none of this version's.
std::optional<model::HostWait> wait_of(const model::PastWait& past);

}  // namespace ssdpulse::live
