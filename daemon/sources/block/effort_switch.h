// SPDX-License-Identifier: Apache-2.0
// Has the programs do more or less on one device, through its mapped state alone: needs no right.
#pragma once

#include <cstdint>

#include "bpf/abi/block_abi.h"
#include "daemon/model/own_cost.h"

namespace ssdpulse::block {

/// CLOCK_MONOTONIC in nanoseconds, as the programs read it.
std::uint64_t monotonic_ns();

/// Requests in flight meanwhile are neither lost nor counted twice: what was issued before ends with its device time,
/// and what was not seen to be issued ends as untimed. Detaching is the caller's. `now_ns`: for tests.
void switch_effort(model::Effort effort, device_state& state, std::uint64_t (*now_ns)() = monotonic_ns);

}  // namespace ssdpulse::block
