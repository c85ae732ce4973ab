// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/effort_switch.h"

#include <linux/types.h>

#include <chrono>
#include <limits>

namespace ssdpulse::block {

std::uint64_t monotonic_ns() {
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(now.count());
}

void switch_effort(model::Effort effort, device_state& state, std::uint64_t (*now_ns)()) {
  __u32& flags = state.geometry.flags;
  const bool timed = effort < model::Effort::completions;
  const bool begins = timed && (flags & DEVICE_UNTIMED) != 0;
  if (begins) {
    // Until that time is known, any request that no slot holds may have been issued before it.
    __atomic_store_n(&state.timed_since_ns, std::numeric_limits<__u64>::max(), __ATOMIC_SEQ_CST);
  }
  __u32 wanted = flags & ~static_cast<__u32>(DEVICE_UNATTRIBUTED | DEVICE_UNTIMED);
  wanted |= effort == model::Effort::everything ? 0U : static_cast<__u32>(DEVICE_UNATTRIBUTED);
  wanted |= timed ? 0U : static_cast<__u32>(DEVICE_UNTIMED);
  __atomic_store_n(&flags, wanted, __ATOMIC_SEQ_CST);
  if (begins) {
    // Read after the switch: a program that still saw it untimed has a request that was allocated before this time.
    __atomic_store_n(&state.timed_since_ns, __u64{now_ns()}, __ATOMIC_SEQ_CST);
  }
}

}  // namespace ssdpulse::block
