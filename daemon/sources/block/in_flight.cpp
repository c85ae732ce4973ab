// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/in_flight.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ssdpulse::block {

void InFlight::add(std::uint64_t issues, std::uint64_t completions, EventIncrements& events) {
  for (const std::size_t taken : std::array<std::size_t, 2>{EVENT_COMPLETION_MISSED, EVENT_SLOT_COLLISION}) {
    const std::uint64_t known = std::min(events.count[taken], given_up_);
    events.count[taken] -= known;
    given_up_ -= known;
  }
  requests_ += static_cast<std::int64_t>(issues - completions - events.count[EVENT_FAILOVER] -
                                         events.count[EVENT_COMPLETION_MISSED] - events.count[EVENT_SLOT_COLLISION]);
  if (requests_ < 0) {
    // A request that was given up was seen to end after all: the kernel does not count it as missed.
    const std::uint64_t back = std::min(static_cast<std::uint64_t>(-requests_), given_up_);
    requests_ += static_cast<std::int64_t>(back);
    given_up_ -= back;
  }
}

std::uint64_t InFlight::mark_missed() {
  if (requests_ <= 0) {
    return 0;
  }
  const auto requests = static_cast<std::uint64_t>(std::exchange(requests_, 0));
  given_up_ += requests;
  return requests;
}

}  // namespace ssdpulse::block
