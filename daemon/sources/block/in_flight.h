// SPDX-License-Identifier: Apache-2.0
// How many requests of one operation are issued and not ended, at one place in the kernel's tables?
//
// Issues less ends. An end that no program saw shows when another request takes the slot; until then it may be given
// up, where somebody knows that it has come. What is given up is counted as missed then, and not once more when its
// slot is taken.
#pragma once

#include <cstdint>

#include "daemon/sources/block/cell_decoder.h"

namespace ssdpulse::block {

class InFlight {
 public:
  /// What was counted since the last call. Misses that were given up before are taken out of `events`.
  void add(std::uint64_t issues, std::uint64_t completions, EventIncrements& events);

  /// All of them have ended unseen. How many; 0 from then on.
  std::uint64_t give_up();

  [[nodiscard]] std::int64_t requests() const { return requests_; }

 private:
  std::int64_t requests_ = 0;
  std::uint64_t given_up_ = 0;  // their slots still hold them
};

}  // namespace ssdpulse::block
