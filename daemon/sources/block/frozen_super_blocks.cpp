// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/frozen_super_blocks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ssdpulse::block {
namespace {

/// dev_t within the kernel: MINORBITS is 20 (include/linux/kdev_t.h).
std::string device_number(__u32 device) {
  constexpr unsigned kMinorBits = 20;
  return std::to_string(device >> kMinorBits) + ":" + std::to_string(device & ((1U << kMinorBits) - 1));
}

}  // namespace

void FrozenSuperBlocks::observe(const std::vector<freeze_event>& events, std::uint64_t lost) {
  for (const freeze_event& event : events) {
    const std::string device = device_number(event.device);
    if (event.frozen == 0) {
      commands_.erase(device);
    } else if (event.by_thaw != 0) {
      commands_[device].clear();  // the thaw was refused, or somebody else keeps it frozen, too
    } else {
      const auto* const end = std::find(std::begin(event.name), std::end(event.name), '\0');
      commands_.try_emplace(device, std::string(std::begin(event.name), end));
    }
  }
  // One may have been lost after the last of these events, or, last time, before the first.
  const bool lost_now = std::exchange(lost_, lost) != lost;
  if (std::exchange(lost_before_, lost_now) || lost_now) {
    forget();
  }
}

}  // namespace ssdpulse::block
