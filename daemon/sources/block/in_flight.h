// SPDX-License-Identifier: Apache-2.0
// InFlight: how many requests of one operation have been issued but not ended, in one row of the kernel's tables.
//
// Issues minus ends. A request whose end no program saw stays in its slot until another one takes it, which the kernel
// side counts as a missed completion. If user space finds out earlier, it gives the request up: the missed completion
// is counted at once, and not again when the slot is taken.
#pragma once

#include <cstdint>

#include "daemon/sources/block/cell_decoder.h"

namespace ssdpulse::block {

class InFlight {
 public:
  /// Counts since the last call. Removes from `events` the misses and collisions of requests that were given up.
  void add(std::uint64_t issues, std::uint64_t completions, EventIncrements& events);

  /// All of them have ended unseen. Returns how many there were; none are in flight afterwards.
  std::uint64_t mark_missed();

  [[nodiscard]] std::int64_t requests() const { return requests_; }

 private:
  std::int64_t requests_ = 0;
  std::uint64_t given_up_ = 0;  // requests that still hold a slot
};

}  // namespace ssdpulse::block
