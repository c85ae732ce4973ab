// SPDX-License-Identifier: Apache-2.0
// Makes the programs do more or less on one device, only through its mapped state: needs no privilege.
#pragma once

#include <cstdint>

#include "bpf/abi/block_abi.h"
#include "daemon/model/own_cost.h"

namespace ssdpulse::block {

/// CLOCK_MONOTONIC in nanoseconds, as the programs read it.
std::uint64_t monotonic_ns();

/// Requests in flight meanwhile are neither lost nor counted twice: those issued before end with their device time, and
/// those whose issue was not seen end as untimed. Detaching is up to the caller. `now_ns`: for tests.
void switch_effort(model::Effort effort, device_state& state, std::uint64_t (*now_ns)() = monotonic_ns);

}  // namespace ssdpulse::block
